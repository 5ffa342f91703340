import type { StoredApi } from "../domain/api.ts";
import type { UpdateApi } from "../store/commands.ts";
import type { Management } from "../store/management.ts";
import { StateConflict } from "./conflict.ts";
import { changeOnce, type IdempotencyKey } from "./idempotency.ts";
import { type EventDeps, newEvent } from "./new-event.ts";

/** Answers the API as it is then; undefined if there is no such API. Throws `StateConflict`. */
export async function updateApi(
  management: Management,
  request: Pick<UpdateApi, "apiId" | "ifVersion" | "changes">,
  key: IdempotencyKey | undefined,
  deps: EventDeps,
): Promise<StoredApi | undefined> {
  const { apiId } = request;
  const command = { kind: "updateApi", ...request, event: newEvent(deps) } as const;
  const outcome = await changeOnce(management, command, apiId, { key, request, ...deps });
  switch (outcome.outcome) {
    case "done":
      return outcome.answer;
    case "conflict":
      throw new StateConflict(outcome.reason);
    case "missing":
      return undefined;
    case "repeated":
      return management.read({ kind: "api", apiId });
  }
}
