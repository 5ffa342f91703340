import { countedKeysMax } from "../store/commands.ts";
import type { ConflictReason } from "../store/management.ts";

/** What is stored does not allow the change, and nothing has changed. Safe to show to the caller. */
export class StateConflict extends Error {
  override readonly name = "StateConflict";
  readonly reason: ConflictReason;

  /** `keys`: how many, where they are the reason. */
  constructor(reason: ConflictReason, keys = 0) {
    super(reason === "ownerHasKeys" ? saidOfKeys(keys) : said[reason]);
    this.reason = reason;
  }
}

function saidOfKeys(keys: number): string {
  const many =
    keys > countedKeysMax ? `more than ${countedKeysMax} keys name` : keys === 1 ? "1 key names" : `${keys} keys name`;
  return `${many} the owner; say what becomes of them with keys: "keep", "disable" or "delete"`;
}

const said: Readonly<Record<Exclude<ConflictReason, "ownerHasKeys">, string>> = {
  noCounter: "it has no counter; set one first with updateRemaining",
  belowZero: "the counter would fall below 0",
  aboveMax: "the counter would rise above 2147483647",
  ownerExists: "an owner with this ownerId exists already; change it with owners.updateOwner",
  apiExists: "an API with this apiId exists already; change it with apis.updateApi",
  apiIsDeleting: "the API is being deleted and takes no keys",
  hasKeys: "the API has keys; delete them first, or send force",
  version: "it was changed since: its version is not ifVersion; read it again",
};
