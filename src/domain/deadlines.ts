/*
 * How long a caller waits before it gets 503. `pathMs` is the round trip from the front to the ledger. Near the ledger all
 * is short: what counts there is that a call does not wait longer than half a second for one of its stages.
 */

const stageMinMs = 450;
const marginMs = 100;

/** For a look-up or a use. Either may first wait for the batch before it, which takes a part of the path. */
export function stageTimeoutMs(pathMs: number): number {
  return Math.max(stageMinMs, 1.5 * pathMs + marginMs);
}

/**
 * For a permit. A request can come right after an ask was sent, and the answer to that can come shortly before the end of
 * a window, when more permits would come too late. Then it waits for an answer, for the next window and for the answer to
 * an ask of its own: three paths, and half of one for batches on the way.
 */
export function permitTimeoutMs(pathMs: number): number {
  return Math.max(stageMinMs, 3.5 * pathMs + marginMs);
}
