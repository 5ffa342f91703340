import type { CostQueue } from "../../../src/domain/cost-queue.ts";
import type { CostRun } from "../../../src/domain/cost-runs.ts";
import type { PermitPool } from "../../../src/domain/permit-pool.ts";
import type { ShortLevel } from "../../../src/domain/permit-shortages.ts";
import type { PermitMessage } from "../../../src/domain/permit-verdict.ts";
import type { PermitGrant } from "../../../src/domain/permit-window.ts";

/** Shown, pinned by the model, or compared through the flights. */
const irrelevant = new Set([
  "shownEndMs",
  "limit",
  "limitToldBy",
  "limitKnownFrom",
  "shownMin",
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

/** The numbers of a pool's messages. Only which of them a flight is counts, not the numbers themselves. */
type Numbers = Record<
  "lastMessageNumber" | "currentNumber" | "overdueNumber" | "overlapNumber" | "limitKnownFrom",
  number
>;

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
  const { currentNumber, overdueNumber } = numbersOf(pool);
  let key = `${busy ? "b" : "c"}${heardLimit} ${currentNumber !== 0}${overdueNumber !== 0}`;
  for (const name of Object.keys(pool)) {
    if (!irrelevant.has(name)) key += ` ${textOf(nowMs, name, (pool as unknown as Record<string, unknown>)[name])}`;
  }
  if (uses.length > 0) key += `u${uses.map(({ gen, cost }) => `${gen}:${cost}`).toSorted()}`;
  return flights.length === 0 ? key : key + flights.map((flight) => flightKey(flight, pool, nowMs)).sort();
}

function flightKey({ message, grant, endsAtMs, orphan, declined }: Flight, pool: PermitPool, nowMs: number): string {
  const { waiting, inAdvance, gen, returned, spent } = message.ask;
  const { number, outdated } = message;
  const { lastMessageNumber, currentNumber, overdueNumber, overlapNumber, limitKnownFrom } = numbersOf(pool);
  const place = [number === lastMessageNumber, number === currentNumber, number === overdueNumber];
  const state = `${place} ${number <= overlapNumber} ${number < limitKnownFrom} ${declined}`;
  const answer = grant && `${grant.gen} ${grant.granted} ${grant.left} ${grant.outstanding} ${grant.endsInMs}`;
  const sent = `${nowMs - message.sentAtMs} ${runsText(waiting)} ${inAdvance} ${gen} ${returned} ${outdated} ${spent}`;
  return `{${state} ${orphan} ${sent}>${answer} ${endsAtMs} ${grant?.contended} ${grant?.clockBehind}}`;
}

/** Times are compared only with the present, except in `shortLevels`: how long ago they were makes no difference. */
function textOf(nowMs: number, name: string, value: unknown): unknown {
  if (name === "waiting") return runsText(runsOf(value as CostQueue));
  if (name === "shortLevels")
    return (value as readonly ShortLevel[]).map(({ above, sinceMs }) => `${above}@${sinceMs}`);
  if (!name.endsWith("Ms")) return value;
  return Number(value) <= nowMs ? "-" : value;
}

function runsText(runs: readonly CostRun[]): string {
  return runs.map(({ cost, count }) => `${count}x${cost}`).join();
}

export function runsOf(queue: CostQueue): CostRun[] {
  return queue.firstRuns(Number.POSITIVE_INFINITY, 0);
}

export function numbersOf(pool: PermitPool): Numbers {
  return pool as unknown as Numbers;
}
