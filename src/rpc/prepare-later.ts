import type { Endpoint } from "./call.ts";
import { prepareRules } from "./validate.ts";

const prepareEveryMs = 500;

/**
 * Compiling all rules takes a fifth of a second, and only some requests need them. So it is done after the first
 * requests were served, in steps: a request that comes meanwhile waits for one step at most.
 */
export function prepareLater(endpoints: readonly Endpoint[]): void {
  const [first, ...rest] = endpoints.filter(({ handle }) => handle !== undefined);
  if (first === undefined) return;
  const prepare = () => {
    prepareRules(first.method.input);
    prepareLater(rest);
  };
  setTimeout(prepare, prepareEveryMs).unref();
}
