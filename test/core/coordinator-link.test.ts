import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { systemClock } from "../../src/ambient/clock.ts";
import { createLog } from "../../src/ambient/log.ts";
import { CoordinatorLink } from "../../src/core/remote/coordinator-link.ts";
import { NotExecuted } from "../../src/core/wire.ts";
import { Secret } from "../../src/domain/secret.ts";
import { Unavailable } from "../../src/domain/unavailable.ts";
import { nextTurn } from "../batching/next-turn.ts";
import { askFor, settledWith } from "../ratelimit/strict/asks.ts";
import { FaultyProxy } from "../support/faulty-proxy.ts";
import { ones } from "../support/ones.ts";
import { TestClock } from "../support/test-clock.ts";
import { exchange, granting, setUpLink } from "./link-fixture.ts";
import { ScriptedCoordinator } from "./scripted-coordinator.ts";

const away = new Unavailable("the coordinator is away");
const notSent = "the call was not sent";

describe("a link to a coordinator", () => {
  it("is up after the coordinator's first message, and hands calls back before", async () => {
    const coordinator = await ScriptedCoordinator.start();
    coordinator.welcomes = false;
    const log = createLog("error", () => {});
    const link = new CoordinatorLink({
      address: coordinator.address,
      onRecall: () => {},
      clock: systemClock,
      log,
    });
    onTestFinished(() => link.close());
    await vi.waitFor(() => expect(coordinator.streams).toBe(1));
    expect(link.isUp).toBe(false);
    await expect(exchange(link, "k", askFor({ waiting: ones(1) }))).rejects.toThrow(NotExecuted);
    coordinator.say({});
    await vi.waitFor(() => expect(link.isUp).toBe(true));
    expect(coordinator.requests).toEqual([]);
  });

  it("puts everything of a turn into one message, and the next turn's into another", async () => {
    const { coordinator, link } = await setUpLink();
    const pending = Array.from({ length: 100 }, (_, i) => exchange(link, `key ${i}`, askFor({ waiting: ones(i) })));
    pending.push(Promise.resolve().then(() => exchange(link, "in the same turn", askFor({ waiting: ones(1) }))));
    await nextTurn();
    await nextTurn();
    pending.push(exchange(link, "later", askFor({ waiting: ones(1) })));
    await vi.waitFor(() => expect(coordinator.requests.length).toBe(2));
    expect(coordinator.requests.map(({ calls }) => calls.length)).toEqual([101, 1]);
    expect(coordinator.asks[42]).toMatchObject({ subject: "key 42", waiting: ones(42) });
    expect(new Set(coordinator.asks.map(({ id }) => id)).size).toBe(102);
    coordinator.say({ answers: coordinator.asks.map(({ id }) => granting(id, id)) });
    await Promise.all(pending);
  });

  it("gives each answer to its call, in any order, and ignores answers without a call", async () => {
    const { coordinator, link } = await setUpLink();
    const ask = askFor({ waiting: ones(3), inAdvance: 4, gen: 2 ** 40, returned: 5, spent: 6 });
    const pending = Promise.all(["a", "b", "c", "d"].map((subject) => exchange(link, subject, ask)));
    await vi.waitFor(() => expect(coordinator.asks.length).toBe(4));
    const { holders: __, ...onTheWire } = ask;
    expect(coordinator.asks[0]).toMatchObject({ subject: "a", ...onTheWire });
    const [a = 0, b = 0, c = 0, d = 0] = coordinator.asks.map(({ id }) => id);
    coordinator.say({
      answers: [granting(999, 9), { id: d, answer: { case: "missing", value: {} } }, granting(b, 2)],
    });
    const failure = { case: "failure" as const, value: { reason: "unknown" } };
    coordinator.say({ answers: [{ id: c, answer: failure }, granting(a, 1), granting(a, 8)] });
    expect(await pending).toEqual([
      settledWith({ granted: 1 }),
      settledWith({ granted: 2 }),
      { outcome: "failed", reason: expect.any(String) },
      { outcome: "missing" },
    ]);
  });

  it("takes an answer of no known kind, as a newer version might send, for unknown", async () => {
    const { coordinator, link } = await setUpLink();
    const answer = exchange(link, "k", askFor({ waiting: ones(1) }));
    await vi.waitFor(() => expect(coordinator.asks.length).toBe(1));
    coordinator.say({ answers: [{ id: coordinator.asks[0]?.id ?? 0 }] });
    expect(await answer).toMatchObject({ outcome: "failed" });
  });

  it("passes recalls on", async () => {
    const { coordinator, recalls } = await setUpLink();
    coordinator.say({ recalls: ["k", "l"] });
    coordinator.say({ recalls: ["k"] });
    await vi.waitFor(() => expect(recalls).toEqual(["k", "l", "k"]));
  });

  it("fails what was under way when the stream breaks, sends none of it again, and comes back by itself", async () => {
    const { coordinator, link, logLines } = await setUpLink();
    const pending = Promise.allSettled(["a", "b"].map((subject) => exchange(link, subject, askFor({ returned: 3 }))));
    await vi.waitFor(() => expect(coordinator.asks.length).toBe(2));
    coordinator.breakStreams();
    expect(await pending).toEqual(Array(2).fill({ status: "rejected", reason: away }));
    await vi.waitFor(() => expect(link.isUp).toBe(true));
    const answer = exchange(link, "c", askFor({ waiting: ones(1) }));
    // What was sent again would have come before it.
    await vi.waitFor(() => expect(coordinator.asks.length).toBe(3));
    expect(coordinator.asks[2]?.subject).toBe("c");
    coordinator.say({ answers: [granting(coordinator.asks[2]?.id ?? 0, 1)] });
    expect(await answer).toMatchObject({ granted: 1 });
    expect(logLines.map((line) => JSON.parse(line).msg)).toEqual([
      "the coordinator is away",
      "the coordinator is back",
    ]);
  });

  it("does not send the calls of a turn in which the stream broke", async () => {
    const { coordinator, link } = await setUpLink();
    coordinator.breakStreams();
    const answers: Promise<unknown>[] = [];
    while (link.isUp && answers.length < 10_000) {
      answers.push(exchange(link, "k", askFor({ returned: 1 })).catch((error: Error) => error.message));
      await nextTurn();
    }
    // Handed back if they were not written to the socket, otherwise of unknown outcome.
    for (const answer of await Promise.all(answers)) expect([away.message, notSent]).toContain(answer);
    const arrived = coordinator.asks.length;
    await vi.waitFor(() => expect(link.isUp).toBe(true));
    exchange(link, "later", askFor({})).catch(() => {});
    await vi.waitFor(() => expect(coordinator.asks.at(-1)?.subject).toBe("later"));
    expect(coordinator.asks.length).toBe(arrived + 1);
  });

  it("gives up on a coordinator that has fallen silent, and finds it again", async () => {
    let proxy: FaultyProxy | undefined;
    const clock = new TestClock();
    const { coordinator, link } = await setUpLink({
      clock,
      async port({ port }) {
        proxy = await FaultyProxy.start(port);
        return proxy.port;
      },
    });
    (proxy as FaultyProxy).silent = true;
    const lost = exchange(link, "k", askFor({ returned: 1 }));
    lost.catch(() => {});
    await vi.waitFor(() => {
      clock.advance(100);
      expect(link.isUp).toBe(false);
    });
    // In doubt first, and given up after a while.
    clock.advance(2000);
    await expect(lost).rejects.toThrow(away);
    (proxy as FaultyProxy).silent = false;
    await vi.waitFor(() => expect(link.isUp).toBe(true), { timeout: 60_000 });
    expect(coordinator.asks).toEqual([]);
  });

  it("waits for a coordinator that is not there yet, and says so once", async () => {
    const logLines: string[] = [];
    const { port } = await ScriptedCoordinator.start().then((first) => {
      first.stop();
      return first;
    });
    const log = createLog("info", (line) => logLines.push(line));
    const link = new CoordinatorLink({
      address: `127.0.0.1:${port}`,
      onRecall: () => {},
      clock: systemClock,
      log,
    });
    onTestFinished(() => link.close());
    await delay(400);
    await ScriptedCoordinator.start(port);
    await vi.waitFor(() => expect(link.isUp).toBe(true), { timeout: 60_000 });
    expect(logLines.map((line) => JSON.parse(line).msg)).toEqual([
      "the coordinator is away",
      "the coordinator is back",
    ]);
    expect(JSON.parse(logLines[0] ?? "")).toMatchObject({ address: `127.0.0.1:${port}`, reason: "ECONNREFUSED" });
  });

  it("shows the secret to the coordinator only", async () => {
    const secret = "secret-of-the-internal-listener-0123";
    const { coordinator, logLines } = await setUpLink({ secret: new Secret(secret) });
    coordinator.breakStreams();
    await vi.waitFor(() => expect(coordinator.authorizations).toEqual(Array(2).fill([`Bearer ${secret}`])));
    expect(logLines.join()).not.toContain(secret);
  });

  it("lets a bounded number of calls wait for an answer", async () => {
    const { link } = await setUpLink();
    const pending = Array.from({ length: 50_000 }, () =>
      exchange(link, "k", askFor({})).catch((error: Error) => error.message),
    );
    await expect(exchange(link, "k", askFor({}))).rejects.toThrow(Unavailable);
    link.close();
    const answers = new Set(await Promise.all(pending));
    for (const answer of answers) expect([away.message, notSent]).toContain(answer);
  });

  it("still sends the calls of the turn in which it is closed, and nothing after", async () => {
    const { coordinator, link } = await setUpLink();
    const last = exchange(link, "k", askFor({ returned: 4 })).catch((error: Error) => error.message);
    link.close();
    expect(await last).toBe(away.message);
    await vi.waitFor(() => expect(coordinator.asks).toMatchObject([{ subject: "k", returned: 4 }]));
    await expect(exchange(link, "k", askFor({}))).rejects.toThrow(NotExecuted);
    await vi.waitFor(() => expect(coordinator.streams).toBe(0));
  });
});
