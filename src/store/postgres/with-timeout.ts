/**
 * The result of the work, or an error after that time; the work itself continues. Input that has already arrived is read
 * before the timeout counts: after a pause of this process (busy machine, garbage collection) the timer would otherwise
 * win over a reply that was already there.
 */
export async function withTimeout<Result>(work: Promise<Result>, ms: number, message: string): Promise<Result> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => setImmediate(() => setImmediate(() => reject(new Error(message)))), ms);
  });
  // It may fail after the timeout: then its error is not needed, and must not count as unhandled.
  work.catch(() => {});
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
