/** Milliseconds of the system's monotonic clock: the same for every process of this machine, and never set. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
