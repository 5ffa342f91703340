import type { KeyDefaults, StoredApi } from "../domain/api.ts";
import { Forbidden } from "../domain/forbidden.ts";
import { formatId, idRandomLength } from "../domain/id.ts";
import type { Management } from "../store/management.ts";
import { StateConflict } from "./conflict.ts";
import { changeOnce, IdempotencyConflict, type IdempotencyKey } from "./idempotency.ts";
import { type EventDeps, newEvent } from "./new-event.ts";

export interface CreateApiRequest {
  /** Absent: one is generated. */
  readonly apiId: string | undefined;
  readonly name: string | undefined;
  readonly defaults: KeyDefaults;
}

/** Answers the API. Throws `StateConflict`, `IdempotencyConflict` or `Forbidden`. */
export async function createApi(
  management: Management,
  request: CreateApiRequest,
  key: IdempotencyKey | undefined,
  deps: EventDeps,
): Promise<StoredApi> {
  const event = newEvent(deps);
  const { apiId = formatId("api", event.atMs, deps.random.bytes(idRandomLength)), name, defaults } = request;
  const command = { kind: "createApi", apiId, name, defaults, event } as const;
  const outcome = await changeOnce(management, command, apiId, { key, request, ...deps });
  switch (outcome.outcome) {
    case "done":
      return outcome.answer as StoredApi;
    case "conflict":
      throw new StateConflict(outcome.reason);
    case "missing":
      throw new Forbidden("a root key that is limited to some APIs cannot create others");
    case "repeated": {
      const { targetId } = outcome;
      const created = await management.read({ kind: "api", apiId: targetId });
      if (created !== undefined) return created;
      throw new IdempotencyConflict(`this Idempotency-Key has created ${targetId}, which was deleted since`);
    }
  }
}
