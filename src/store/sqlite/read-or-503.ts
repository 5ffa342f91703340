import { Unavailable } from "../../domain/unavailable.ts";
import { isDamage } from "./result-codes.ts";

/** What was read, or `Unavailable`. `onDamage` is called if the file could not be read properly. */
export function readOr503<Result>(onDamage: (cause: unknown) => void, read: () => Result): Result {
  try {
    return read();
  } catch (cause) {
    if (isDamage((cause as { errcode?: number }).errcode)) onDamage(cause);
    throw new Unavailable("the data could not be read", { cause, affectsOneKeyOnly: true });
  }
}
