import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { systemClock } from "../../src/ambient/clock.ts";
import { ManagementQueue } from "../../src/rpc/management-queue.ts";
import { settles } from "../support/settles.ts";

/** A thread that works so much of its time, with a clock that the test moves. */
function setUp(thread = { utilisation: 1 }) {
  let nowMs = 1000;
  const clock = { ...systemClock, monotonicMs: () => nowMs };
  const queue = new ManagementQueue({ clock, utilisation: () => thread.utilisation });
  const begun: string[] = [];
  /** A call that takes so long. */
  const call = (name: string, takesMs = 0) =>
    queue.run(() => {
      begun.push(name);
      nowMs += takesMs;
      return name;
    });
  const pass = (ms: number) => {
    nowMs += ms;
    vi.advanceTimersByTime(ms);
  };
  const verify = (count: number) => {
    for (let i = 0; i < count; i++) queue.verificationBegins();
  };
  return {
    queue,
    begun,
    call,
    pass,
    verify,
    /** Verifications come, and a management call now and then. */
    async becomeBusy() {
      await call("first");
      verify(1000);
      pass(100);
      begun.length = 0;
    },
    /** One makes three calls, each right after an answer. */
    async noticeSerialCaller() {
      for (let i = 0; i < 4; i++) {
        const next = call("of a serial caller");
        pass(40);
        verify(1000);
        await next;
      }
    },
  };
}

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setImmediate"] }));
afterEach(() => void vi.useRealTimers());

describe("on a thread that verifications keep busy", () => {
  it("management calls wait until none has come for 40 ms, and are begun together in order", async () => {
    const { becomeBusy, call, pass, verify, begun } = setUp();
    await becomeBusy();
    void call("a");
    verify(1000);
    pass(39);
    void call("b");
    pass(39);
    expect(begun).toEqual([]);
    pass(1);
    expect(begun).toEqual(["a", "b"]);
    void call("c");
    expect(begun).toEqual(["a", "b"]);
    pass(40);
    expect(begun).toEqual(["a", "b", "c"]);
  });

  it("none waits longer than 100 ms, however many come", async () => {
    const { becomeBusy, call, pass, verify, begun } = setUp();
    await becomeBusy();
    for (let i = 0; i < 10; i++) {
      void call(`${i}`);
      verify(1000);
      expect(begun).toEqual([]);
      pass(10);
    }
    expect(begun).toHaveLength(10);
    void call("of the next ones");
    pass(39);
    expect(begun).toHaveLength(10);
    pass(1);
    expect(begun).toHaveLength(11);
  });

  it("they take little of each turn, and those that waited with them do not wait again", async () => {
    const { becomeBusy, call, pass, begun } = setUp();
    await becomeBusy();
    for (const name of ["a", "b", "c", "d", "e"]) void call(name, 0.6);
    pass(40);
    expect(begun).toEqual(["a", "b"]);
    vi.advanceTimersToNextTimer();
    expect(begun).toEqual(["a", "b", "c", "d"]);
    vi.advanceTimersToNextTimer();
    expect(begun).toEqual(["a", "b", "c", "d", "e"]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("the first is begun where too many wait: each holds its body", async () => {
    const { becomeBusy, call, pass, begun } = setUp();
    await becomeBusy();
    for (let i = 0; i < 100; i++) void call(`${i}`);
    expect(begun).toEqual([]);
    void call("one more");
    expect(begun).toEqual(["0"]);
    pass(40);
    expect(begun).toEqual([...Array.from({ length: 100 }, (_, i) => `${i}`), "one more"]);
  });

  it("they are begun in order of arrival, also behind those that are being begun, and when the thread has time again", async () => {
    const thread = { utilisation: 1 };
    const { becomeBusy, call, pass, verify, begun } = setUp(thread);
    await becomeBusy();
    for (const name of ["a", "b", "c"]) void call(name, 0.6);
    pass(40);
    expect(begun).toEqual(["a", "b"]);
    void call("d");
    vi.advanceTimersToNextTimer();
    expect(begun).toEqual(["a", "b", "c", "d"]);

    void call("e");
    thread.utilisation = 0.5;
    verify(1000);
    pass(30);
    void call("f");
    expect(begun.slice(4)).toEqual([]);
    pass(1);
    expect(begun.slice(4)).toEqual(["e", "f"]);
  });

  it("a caller that waits for each answer is noticed, and does not wait for others", async () => {
    const { becomeBusy, noticeSerialCaller, call, pass, verify, begun } = setUp();
    await becomeBusy();
    await noticeSerialCaller();
    for (const name of ["a", "b", "c"]) {
      pass(3);
      const next = call(name);
      expect(begun.at(-1)).toBe(name);
      verify(1000);
      await next;
    }
    pass(20);
    const late = call("late");
    expect(begun.at(-1)).toBe("late");
    await late;
    // Calls are gathered again when none has come for a while.
    pass(21);
    void call("somebody's");
    pass(39);
    expect(begun.at(-1)).toBe("late");
    pass(1);
    expect(begun.at(-1)).toBe("somebody's");
  });

  it("several such callers together make up to 1000 calls a second", async () => {
    const { becomeBusy, noticeSerialCaller, call, pass, verify, begun } = setUp();
    await becomeBusy();
    await noticeSerialCaller();
    pass(1);
    const first = call("a");
    // They come while another is under way, and say nothing about the caller.
    const others = ["b", "c", "d"].map((name) => call(name));
    expect(begun.at(-1)).toBe("a");
    pass(1);
    expect(begun.slice(-4)).toEqual(["a", "b", "c", "d"]);
    verify(1000);
    await Promise.all([first, ...others]);
    void call("e");
    pass(2);
    expect(begun.at(-1)).toBe("d");
    pass(1);
    expect(begun.at(-1)).toBe("e");
  });

  it("such a caller is forgotten when calls of others overlap for a while, and is none where each call is refused", async () => {
    const { becomeBusy, noticeSerialCaller, queue, call, pass, verify, begun } = setUp();
    await becomeBusy();
    await noticeSerialCaller();
    void queue.run(() => new Promise(() => {}));
    for (let ms = 0; ms <= 200; ms += 10) {
      verify(1000);
      pass(10);
      void call(`${ms}`);
    }
    expect(begun.at(-1)).toBe("190");
    pass(40);
    expect(begun.at(-1)).toBe("200");

    const other = setUp();
    await other.becomeBusy();
    for (let i = 0; i < 6; i++) {
      const refused = other.queue.run(() => Promise.reject(new Error("refused")));
      other.pass(40);
      other.verify(1000);
      await expect(refused).rejects.toThrow("refused");
    }
    void other.call("a");
    other.pass(39);
    expect(other.begun).toEqual([]);
  });

  it("two calls that happen to come right after an answer are no such caller", async () => {
    const { becomeBusy, call, pass, verify, begun } = setUp();
    await becomeBusy();
    for (const afterMs of [0, 5, 5, 6, 5, 5, 6]) {
      pass(afterMs);
      const next = call("next");
      pass(39);
      expect(begun).toEqual([]);
      pass(1);
      verify(1000);
      await next;
      begun.length = 0;
    }
  });

  it("those that fail do not keep others waiting", async () => {
    const { becomeBusy, queue, call, pass } = setUp();
    await becomeBusy();
    const thrown = queue.run(() => {
      throw new Error("refused");
    });
    const rejected = queue.run(() => Promise.reject(new Error("later")));
    const answer = call("a");
    pass(40);
    await expect(thrown).rejects.toThrow("refused");
    await expect(rejected).rejects.toThrow("later");
    expect(await answer).toBe("a");
  });
});

describe("management calls are begun at once", () => {
  it("on a thread that has time left", async () => {
    const { becomeBusy, call, begun } = setUp({ utilisation: 0.6 });
    await becomeBusy();
    void call("a");
    expect(begun).toEqual(["a"]);
  });

  it("where they are what keeps the thread busy", async () => {
    const { becomeBusy, call, pass, verify, begun } = setUp();
    await becomeBusy();
    for (let i = 0; i < 10; i++) void call("waits");
    verify(100);
    pass(100);
    begun.length = 0;
    void call("a");
    expect(begun).toEqual(["a"]);
  });

  it("where the thread was not asked for a while: what it did then says nothing about now", async () => {
    const { becomeBusy, call, pass, verify, begun } = setUp();
    await becomeBusy();
    verify(1_000_000);
    pass(5001);
    void call("a");
    expect(begun).toEqual(["a"]);
  });

  it("again, as soon as verifications leave it time", async () => {
    const thread = { utilisation: 1 };
    const { becomeBusy, call, pass, verify, begun } = setUp(thread);
    await becomeBusy();
    void call("a");
    void call("b");
    expect(begun).toEqual([]);
    thread.utilisation = 0.5;
    verify(1000);
    pass(100);
    void call("c");
    expect(begun).toEqual(["a", "b", "c"]);
  });
});

describe("the time that a thread works", () => {
  it("is told from the time that it waits", async () => {
    vi.useRealTimers();
    const queue = new ManagementQueue({ clock: systemClock });
    const isBegunAtOnce = () => {
      let isBegun = false;
      void queue.run(() => {
        isBegun = true;
      });
      return isBegun;
    };
    const verify = () => {
      for (let i = 0; i < 1000; i++) queue.verificationBegins();
    };
    isBegunAtOnce();
    verify();
    const workedMs = performance.now();
    while (performance.now() - workedMs < 100);
    expect(isBegunAtOnce()).toBe(false);
    // A thread that a busy machine keeps waiting seems to work.
    const rest = async () => {
      verify();
      await delay(300);
      return isBegunAtOnce();
    };
    await settles(rest, true, 60_000);
  });
});
