import type { PermitPool } from "../../../src/domain/permit-pool.ts";
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

export interface Replica {
  readonly pool: PermitPool;
  /** The windows of the permits that are in use. */
  uses: number[];
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
    if (!irrelevant.has(name)) key += ` ${timeless(nowMs, name, (pool as unknown as Record<string, unknown>)[name])}`;
  }
  if (uses.length > 0) key += `u${uses.toSorted()}`;
  return flights.length === 0 ? key : key + flights.map((flight) => flightKey(flight, pool, nowMs)).sort();
}

function flightKey({ message, grant, endsAtMs, orphan, declined }: Flight, pool: PermitPool, nowMs: number): string {
  const { wantMin, wantMax, gen, returned, spent } = message.ask;
  const { number, outdated } = message;
  const { lastMessageNumber, currentNumber, overdueNumber, overlapNumber, limitKnownFrom } = numbersOf(pool);
  const place = [number === lastMessageNumber, number === currentNumber, number === overdueNumber];
  const state = `${place} ${number <= overlapNumber} ${number < limitKnownFrom} ${declined}`;
  const answer = grant && `${grant.gen} ${grant.granted} ${grant.left} ${grant.outstanding} ${grant.endsInMs}`;
  const sent = `${nowMs - message.sentAtMs} ${wantMin} ${wantMax} ${gen} ${returned} ${outdated} ${spent}`;
  return `{${state} ${orphan} ${sent}>${answer} ${endsAtMs} ${grant?.contended} ${grant?.clockBehind}}`;
}

/** Times are compared only with the present, except for one: how long ago they were makes no difference. */
function timeless(nowMs: number, name: string, value: unknown): unknown {
  if (!name.endsWith("Ms") || name === "shortSinceMs") return value;
  return Number(value) <= nowMs ? "-" : value;
}

export function numbersOf(pool: PermitPool): Numbers {
  return pool as unknown as Numbers;
}
