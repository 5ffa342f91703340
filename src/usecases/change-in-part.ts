import { IncompleteRule } from "../domain/partial-changes.ts";
import { Unavailable } from "../domain/unavailable.ts";

/** Each of them means that somebody else has made a change meanwhile. */
const triesMax = 50;

/** Nothing has this version, so a command with it changes nothing. It still tells what is missing, or was done before. */
const noVersion = 0;

/**
 * Makes a change that says only a part of a rule: completed by what is stored, and only if that is still stored then. If it
 * was changed meanwhile, it is read again, unless the caller has asked for a version. Throws `IncompleteRule`.
 */
export async function changeInPart<Stored extends { readonly version: number }, Result extends object>(
  ifVersion: number | undefined,
  read: () => Promise<Stored | undefined>,
  complete: (stored: Stored) => object,
  change: (changes: object, ifVersion: number | undefined) => Promise<Result>,
): Promise<Result> {
  for (let tries = 1; tries <= triesMax; tries++) {
    const stored = await read();
    const completed = stored && unlessIncomplete(() => complete(stored));
    if (stored === undefined || completed instanceof IncompleteRule) {
      const outcome = await change({}, noVersion);
      const isOtherVersion = ifVersion !== undefined && ifVersion !== stored?.version;
      if (!isVersionConflict(outcome) || isOtherVersion) return outcome;
      if (completed !== undefined) throw completed;
    } else {
      const outcome = await change(completed as object, ifVersion ?? stored.version);
      if (!isVersionConflict(outcome) || ifVersion !== undefined) return outcome;
    }
  }
  throw new Unavailable("others have changed it each time");
}

function unlessIncomplete(complete: () => object): object {
  try {
    return complete();
  } catch (error) {
    if (error instanceof IncompleteRule) return error;
    throw error;
  }
}

function isVersionConflict(outcome: object): boolean {
  return "reason" in outcome && outcome.reason === "version";
}
