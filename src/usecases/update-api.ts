import type { ApiFieldChanges, StoredApi } from "../domain/api.ts";
import { type ApiChangeParts, completeApiChanges } from "../domain/partial-changes.ts";
import type { UpdateApi } from "../store/commands.ts";
import type { Management } from "../store/management.ts";
import { changeInPart } from "./change-in-part.ts";
import { StateConflict } from "./conflict.ts";
import { changeOnce, type IdempotencyKey } from "./idempotency.ts";
import { type EventDeps, newEvent } from "./new-event.ts";

interface UpdateApiRequest extends Pick<UpdateApi, "apiId" | "ifVersion"> {
  readonly changes: ApiChangeParts;
}

/** Answers the API as it is then; undefined if there is no such API. Throws `StateConflict` or `IncompleteRule`. */
export async function updateApi(
  management: Management,
  request: UpdateApiRequest,
  key: IdempotencyKey | undefined,
  deps: EventDeps,
): Promise<StoredApi | undefined> {
  const { apiId, ifVersion, changes: parts } = request;
  const event = newEvent(deps);
  const read = () => management.read({ kind: "api", apiId });
  const change = (changes: ApiFieldChanges, version: number | undefined) => {
    const command = { kind: "updateApi", apiId, ifVersion: version, changes, event } as const;
    return changeOnce(management, command, apiId, { key, request, ...deps });
  };
  const complete = (stored: StoredApi) => completeApiChanges(parts, stored);
  const { defaults, ...others } = parts;
  const outcome = await (defaults
    ? changeInPart({ ifVersion, read, complete, change })
    : change({ ...others, defaults: defaults === null ? {} : undefined }, ifVersion));
  switch (outcome.outcome) {
    case "done":
      return outcome.answer;
    case "conflict":
      throw new StateConflict(outcome.reason);
    case "missing":
      return undefined;
    case "repeated":
      return read();
  }
}
