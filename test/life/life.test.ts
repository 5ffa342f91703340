import { describe, expect, it } from "vitest";
import { hasPostgres } from "../support/test-database.ts";
import { hasRedis } from "../support/test-redis.ts";
import { checkHistory, explain } from "./check-history.ts";
import { bodyOf } from "./operations.ts";
import { expectExplainedRun } from "./random-run.ts";
import { RunRecorder } from "./run-callers.ts";
import { type StartedService, startReplicas, startThreads } from "./start-service.ts";

// LATCHKEY_LIFE_SEED chooses the operations of a run that failed once more.
const seed = Number(process.env.LATCHKEY_LIFE_SEED ?? Date.now() % 1_000_000);
const operations = 10_000;

/** A run in which one of these hardly happens would show little of it. */
const answers = [
  "createKey done",
  "importKeys done",
  "updateKey done",
  "updateKey conflict",
  "updateRemaining done",
  "updateRemaining conflict",
  "getKey done",
  "getKey notFound",
  "listKeys done",
  "rerollKey done",
  "deleteKey done",
  "deleteKey notFound",
  "verifyKey VALID",
  "verifyKey NOT_FOUND",
  "verifyKey DISABLED",
  "verifyKey EXPIRED",
  "verifyKey RATE_LIMITED",
  "verifyKey USAGE_EXCEEDED",
  "verifyKey unknown",
];

/** It ends a hang. A busy machine takes several times as long as usual. */
const timeout = 180_000;

function expectAllAnswers(times: ReadonlyMap<string, number>): void {
  expect(answers.filter((answer) => (times.get(answer) ?? 0) < 10)).toEqual([]);
}

describe.runIf(hasPostgres && hasRedis)("through three replicas on Postgres with Redis", { timeout }, () => {
  it("random operations are explained by one order of them, and nothing replaced is gone by for more than a second", async () => {
    expectAllAnswers(await expectExplainedRun(await startReplicas(), { seed, operations }));
  });

  it("1 000 conflicting updates leave as many events as versions", async () => {
    await expectOneWinnerEach(await startReplicas());
  });
});

describe("on the embedded store with two threads", { timeout }, () => {
  it("random operations are explained by one order of them, and nothing replaced is gone by", async () => {
    const started = await startThreads();
    expectAllAnswers(await expectExplainedRun(started, { seed, operations }));
    for (const thread of [1, 2]) expect(await started.connectionsOf(thread)).toBeGreaterThan(0);
  });

  it("1 000 conflicting updates leave as many events as versions", async () => {
    await expectOneWinnerEach(await startThreads());
  });
});

/** Of all updates that ask for the same version one is made. Callers go on from the version they have heard of last. */
async function expectOneWinnerEach(started: StartedService): Promise<void> {
  const { service } = started;
  const { make, calls } = new RunRecorder(service, service.actorOf);
  const created = await make(0, { replica: 0, operation: { kind: "createKey", fields: { meta: {}, enabled: true } } });
  const keyId = bodyOf(created, "createKey")?.keyId as string;
  const getKey = { kind: "getKey", keyId } as const;
  let answered = 0;
  let sent = 0;
  let version = 1;
  const note = (key: { version: number } | undefined) => (version = Math.max(version, key?.version ?? 0));
  const update = async (caller: number) => {
    while (answered < 1000 && sent < 3000) {
      const change = ++sent;
      const operation = { kind: "updateKey", keyId, ifVersion: version, changes: { meta: { change } } } as const;
      const replica = change % service.replicas;
      const made = await make(caller, { replica, operation });
      note(bodyOf(made, "updateKey"));
      if (made.answer.status !== "unknown") answered++;
      // A busy machine leaves some without an answer: such an update may have been made or not.
      else note(bodyOf(await make(caller, { replica, operation: getKey }), "getKey"));
    }
  };
  await Promise.all(Array.from({ length: 16 }, (_, caller) => update(caller)));

  const read = await make(0, { replica: 0, operation: getKey });
  const events = await service.listEvents();
  // One update of each version was made, and it has one event. The simulated service's mistakes show what this catches.
  const history = { ...started, calls, events };
  expect(explain(checkHistory(history), history)).toEqual([]);
  expect(answered, service.unexpected[0]).toBeGreaterThanOrEqual(1000);
  expect(calls.filter(({ answer }) => answer.status === "conflict").length).toBeGreaterThan(100);
  expect(bodyOf(read, "getKey")?.version).toBe(events.filter(({ targetId }) => targetId === keyId).length);
}
