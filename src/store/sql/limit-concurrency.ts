import { Unavailable } from "../../domain/unavailable.ts";

/** Runs so much work at a time, in order of arrival. When so much waits, further work is `Unavailable` immediately. */
export function limitConcurrency(
  atOnce: number,
  waitingMax: number,
): <Result>(work: () => Promise<Result>) => Promise<Result> {
  let underWay = 0;
  const waiting: (() => void)[] = [];
  return async (work) => {
    if (underWay < atOnce) underWay++;
    else if (waiting.length >= waitingMax) throw new Unavailable("too many lists are being read");
    // The place is handed over: nothing that arrives in between can take it.
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next === undefined) underWay--;
      else next();
    }
  };
}
