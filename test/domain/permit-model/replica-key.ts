import type { CostRun } from "../../../src/domain/cost-runs.ts";
import type { PermitMessage, PermitPool } from "../../../src/domain/permit-pool.ts";
import type { PermitGrant } from "../../../src/domain/permit-window.ts";

/** Displayed, pinned by the model, or compared through the flights. */
const irrelevant: ReadonlySet<string> = new Set<keyof PermitPool>([
  "resetMs",
  "limit",
  "limitMessage",
  "limitValidFrom",
  "lowestRemaining",
  "ratePerMs",
  "unitsPerMs",
  "squaresPerMs",
  "rateAtMs",
  "rttMs",
  "lastMessageNumber",
  "currentNumber",
  "overdueNumber",
  "overlapNumber",
]);

/** A message between a replica and the ledger. It stays until it is dropped: delivery may be late, or repeated. */
export interface Flight {
  readonly replica: number;
  readonly message: PermitMessage;
  /** The ledger's answer, once it has one. */
  readonly grant: PermitGrant | undefined;
  /** When the window ends by that answer, in true time. */
  readonly endsAtMs: number;
  /** Its sender has crashed: the answer does not arrive. */
  readonly orphan: boolean;
  /** The coordinator has found it too old: it never reaches the ledger, and its answer says so. */
  readonly declined: boolean;
}

export interface Use {
  readonly gen: number;
  readonly cost: number;
}

export interface Replica {
  readonly pool: PermitPool;
  /** Admitted requests whose use is not finished. */
  uses: Use[];
  /** Whether it expects demand. The estimate only sizes blocks, so the model knows two values of it. */
  busy: boolean;
  /** The limit that it has heard of last. */
  heardLimit: number;
  /** Its part of the key, with its flights. Undefined: not known yet. */
  key: number | undefined;
}

/** Equal for replicas that go on in the same way. */
export function replicaKey(
  { pool, uses, busy, heardLimit }: Replica,
  flights: readonly Flight[],
  nowMs: number,
): string {
  let key = `${busy ? "b" : "c"}${heardLimit} ${pool.currentNumber !== 0}${pool.overdueNumber !== 0}`;
  for (const name of Object.keys(pool)) {
    if (!irrelevant.has(name)) key += ` ${textOf(pool, name as keyof PermitPool, nowMs)}`;
  }
  if (uses.length > 0) key += `u${uses.map(({ gen, cost }) => `${gen}:${cost}`).toSorted()}`;
  return flights.length === 0 ? key : key + flights.map((flight) => flightKey(flight, pool, nowMs)).sort();
}

function flightKey({ message, grant, endsAtMs, orphan, declined }: Flight, pool: PermitPool, nowMs: number): string {
  const { waiting, inAdvance, gen, returned, spent } = message.ask;
  const { number, outdated } = message;
  const { lastMessageNumber, currentNumber, overdueNumber, overlapNumber, limitValidFrom } = pool;
  const place = [number === lastMessageNumber, number === currentNumber, number === overdueNumber];
  const state = `${place} ${number <= overlapNumber} ${number < limitValidFrom} ${declined}`;
  const answer = grant && `${grant.gen} ${grant.granted} ${grant.left} ${grant.outstanding} ${grant.endsInMs}`;
  const sent = `${nowMs - message.sentAtMs} ${runsText(waiting)} ${inAdvance} ${gen} ${returned} ${outdated} ${spent}`;
  return `{${state} ${orphan} ${sent}>${answer} ${endsAtMs} ${grant?.contended} ${grant?.clockBehind}}`;
}

/** Times are compared only with the present, except in `shortLevels`: how long ago they were makes no difference. */
function textOf(pool: PermitPool, name: keyof PermitPool, nowMs: number): unknown {
  if (name === "waiting") return runsText(pool.waiting.runs);
  if (name === "shortLevels") return pool.shortLevels.map(({ above, sinceMs }) => `${above}@${sinceMs}`);
  const value = pool[name];
  return name.endsWith("Ms") && Number(value) <= nowMs ? "-" : value;
}

function runsText(runs: readonly CostRun[]): string {
  return runs.map(({ cost, count }) => `${count}x${cost}`).join();
}
