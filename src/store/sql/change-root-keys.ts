import type { CreateRootKey, RevokeRootKey } from "../commands.ts";
import { changePlan, newRow, targetOf } from "./change-resources.ts";
import type { Plan } from "./plan.ts";
import type { SqlEngine } from "./sql-engine.ts";

/* How root keys are made and revoked. */

export function createRootKeyPlan({ db }: SqlEngine, { created, event }: CreateRootKey): Plan {
  const { id, digest, start } = created;
  const inserted = db.insertInto("root_keys").values({ ...newRow("rootKey", created, event), digest, start } as never);
  return {
    target: targetOf("rootKey", id),
    first: [inserted.compile()],
    rest: [],
    outcomeOf: () => ({ outcome: "done", changed: [] }),
  };
}

export function revokeRootKeyPlan(engine: SqlEngine, command: RevokeRootKey): Plan {
  const { id, event } = command;
  const revoked = engine.db.deleteFrom("root_keys").where("id", "=", id).where("event_id", "=", event.id);
  return changePlan(engine, command, { rest: [revoked.compile()] });
}
