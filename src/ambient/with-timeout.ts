/** A deadline. What is left of it can grow meanwhile. */
interface TimeLeft {
  readonly leftMs: number;
}

/**
 * Calls `giveUp` when nothing is left of the time. Returns a function that prevents it. Input that has already arrived is
 * read first: after a pause of this process (busy machine, garbage collection) the timer would otherwise win over a reply
 * that was already there.
 */
export function whenPassed(deadline: TimeLeft, giveUp: () => void): () => void {
  let isCancelled = false;
  let timer: NodeJS.Timeout;
  const judge = () => {
    if (isCancelled) return;
    if (deadline.leftMs > 0) wait();
    else giveUp();
  };
  const wait = () => {
    timer = setTimeout(() => setImmediate(() => setImmediate(judge)), Math.max(1, Math.ceil(deadline.leftMs)));
  };
  wait();
  return () => {
    isCancelled = true;
    clearTimeout(timer);
  };
}

/**
 * The result of the work. Rejects with this error when the deadline has passed; the work itself continues, and what
 * becomes of it is ignored.
 */
export async function withTimeout<Result>(
  work: Promise<Result>,
  deadline: TimeLeft,
  toError: () => Error,
): Promise<Result> {
  let cancel = () => {};
  const late = new Promise<never>((_, reject) => {
    cancel = whenPassed(deadline, () => reject(toError()));
  });
  // It may fail after the timeout: then its error is not needed, and must not count as unhandled.
  work.catch(() => {});
  try {
    return await Promise.race([work, late]);
  } finally {
    cancel();
  }
}

/** Waits for the work, but not longer than this. Never rejects: whoever needs the result awaits the work itself. */
export async function waitAtMost(waitMs: number, work: Promise<unknown>): Promise<void> {
  const endMs = performance.now() + waitMs;
  const deadline = {
    get leftMs() {
      return endMs - performance.now();
    },
  };
  await withTimeout(work, deadline, () => new Error("not yet")).catch(() => {});
}
