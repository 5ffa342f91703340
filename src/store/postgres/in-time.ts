/**
 * What the work comes to, or an error once that much time has passed; the work itself goes on. Input that has already
 * arrived is read before the time counts as passed: after a pause of this process (a busy machine, a collection of
 * garbage) the timer would otherwise win over a reply that was there all along.
 */
export async function inTime<Result>(work: Promise<Result>, ms: number, message: string): Promise<Result> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => setImmediate(() => setImmediate(() => reject(new Error(message)))), ms);
  });
  // It may fail when nobody looks any more.
  work.catch(() => {});
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
