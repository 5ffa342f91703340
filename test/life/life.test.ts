import { describe, expect, it } from "vitest";
import { sized } from "../support/deep.ts";
import { hasPostgres } from "../support/test-database.ts";
import { hasRedis } from "../support/test-redis.ts";
import { checkHistory, explain } from "./check-history.ts";
import { bodyOf } from "./operations.ts";
import { expectExplainedRun } from "./random-run.ts";
import { RunRecorder } from "./run-callers.ts";
import { type StartedService, startReplicas, startWorkers } from "./start-service.ts";

// LATCHKEY_LIFE_SEED chooses the operations of a run that failed once more.
const seed = Number(process.env.LATCHKEY_LIFE_SEED ?? Date.now() % 1_000_000);
const operations = sized(1500, 10_000);
const conflicting = sized(200, 1000);

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

/**
 * That replicas learn of a change within a second is shown at full size only. In `npm test` they may take as long as a busy
 * machine needs.
 */
function withTime(started: StartedService): StartedService {
  return { ...started, standstillMs: sized(() => 60_000, started.standstillMs) };
}

/** Every answer was given, at full size in one run. A smaller run is followed by others until it was. */
async function expectExplainedRuns(started: StartedService): Promise<void> {
  const timesOf = new Map<string, number>();
  const isMissing = (answer: string) => (timesOf.get(answer) ?? 0) < sized(1, 10);
  for (let run = 0; run < sized(20, 1) && answers.some(isMissing); run++) {
    const times = await expectExplainedRun(started, { seed: seed + run, operations });
    for (const [answer, more] of times) timesOf.set(answer, (timesOf.get(answer) ?? 0) + more);
  }
  expect(answers.filter(isMissing)).toEqual([]);
}

describe.runIf(hasPostgres && hasRedis)("through three replicas on Postgres with Redis", () => {
  it("random operations are explained by one order of them, and nothing replaced is gone by for more than a second", async () => {
    await expectExplainedRuns(withTime(await startReplicas()));
  });

  it("conflicting updates leave as many events as versions", async () => {
    await expectOneWinnerEach(withTime(await startReplicas()));
  });
});

describe("on the embedded store with two workers", () => {
  it("random operations are explained by one order of them, and nothing replaced is gone by for more than a second", async () => {
    const started = await startWorkers();
    await expectExplainedRuns(withTime(started));
    for (const worker of [1, 2]) expect(await started.connectionsOf(worker)).toBeGreaterThan(0);
  });

  it("conflicting updates leave as many events as versions", async () => {
    await expectOneWinnerEach(withTime(await startWorkers()));
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
    while (answered < conflicting && sent < 3 * conflicting) {
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
  expect(answered, service.unexpected[0]).toBeGreaterThanOrEqual(conflicting);
  expect(calls.filter(({ answer }) => answer.status === "conflict").length).toBeGreaterThan(conflicting / 10);
  expect(bodyOf(read, "getKey")?.version).toBe(events.filter(({ targetId }) => targetId === keyId).length);
}
