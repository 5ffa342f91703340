import { MessageChannel } from "node:worker_threads";
import { describe, expect, it, onTestFinished } from "vitest";
import { Unavailable } from "../../src/domain/unavailable.ts";
import { ThreadLink } from "../../src/threads/thread-link.ts";

interface Other {
  double(n: number): number;
  later(n: number): Promise<number>;
  fail(kind: string): never;
  note(text: string): void;
  noted(): readonly string[];
}

function setUp() {
  const { port1, port2 } = new MessageChannel();
  const noted: string[] = [];
  const other: Other = {
    double: (n) => 2 * n,
    later: async (n) => 2 * n,
    fail(kind) {
      if (kind === "error") throw new TypeError("a mistake");
      const cause = Object.assign(new Error("refused"), { code: "ECONNREFUSED" });
      throw new Unavailable("not now", { retryAfterMs: 7, cause });
    },
    note: (text) => void noted.push(text),
    noted: () => noted,
  };
  let messages = 0;
  const here = new ThreadLink<object, Other>(port1, {});
  const there = new ThreadLink<Other, object>(port2, other);
  port1.on("message", (batch) => here.onMessage(batch));
  port2.on("message", (batch) => {
    messages++;
    there.onMessage(batch);
  });
  onTestFinished(() => port1.close());
  return { here, messages: () => messages };
}

describe("a link between threads", () => {
  it("answers each question with its own answer, sooner or later", async () => {
    const { here } = setUp();
    const answers = await Promise.all([here.ask("later", 1), here.ask("double", 2), here.ask("later", 3)]);
    expect(answers).toEqual([2, 4, 6]);
  });

  it("sends everything that is said in one turn as one message, in its order", async () => {
    const { here, messages } = setUp();
    for (let i = 0; i < 100; i++) here.notify("note", `${i}`);
    expect(await here.ask("noted")).toEqual(Array.from({ length: 100 }, (_, i) => `${i}`));
    expect(messages()).toBe(1);
  });

  it("passes Unavailable on as Unavailable, with its cause's code, and a bug as an error", async () => {
    const { here } = setUp();
    const unavailable = await here.ask("fail", "").catch((error: unknown) => error);
    expect(unavailable).toBeInstanceOf(Unavailable);
    expect(unavailable).toMatchObject({ message: "not now", retryAfterMs: 7, cause: { code: "ECONNREFUSED" } });

    const mistake = await here.ask("fail", "error").catch((error: unknown) => error);
    expect(mistake).not.toBeInstanceOf(Unavailable);
    expect(mistake).toMatchObject({ message: "a mistake", stack: expect.stringContaining("thread-link.test.ts") });
  });

  it("leaves no call waiting for a thread that is gone", async () => {
    const { here } = setUp();
    const asked = here.ask("double", 1);
    here.onDisconnect(new Error("it fell over"));
    await expect(asked).rejects.toMatchObject({ name: "Unavailable", cause: { message: "it fell over" } });
  });
});
