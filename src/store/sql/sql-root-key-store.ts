import { rootKeyFields } from "../../domain/resources.ts";
import type { CreateRootKey, RevokeRootKey } from "../commands.ts";
import { generatedRootKeyId, type RootKeyStore } from "../root-key-store.ts";
import { changePlan, newRow, targetOf } from "./change-resources.ts";
import { columnNames, insertRow, propertiesOf } from "./field-columns.ts";
import { type ChangePlan, deleteRow } from "./plan.ts";
import { columnList, sql } from "./sql.ts";
import { addRootKeysChange } from "./sql-change-feed.ts";
import type { SqlEngine } from "./sql-engine.ts";

interface GeneratedRow {
  readonly id: string;
  readonly digest: string;
  readonly expires_at_ms: number | null;
}

export function createSqlRootKeyStore(engine: SqlEngine): RootKeyStore {
  const isOver = ({ id, expires_at_ms }: GeneratedRow, nowMs: number) =>
    id === generatedRootKeyId && expires_at_ms !== null && expires_at_ms <= nowMs;
  return {
    async findByDigest(digest) {
      const columns = columnList(["id", ...columnNames(rootKeyFields)]);
      const [row] = await engine.read<{ id: string }>(sql`SELECT ${columns} FROM root_keys WHERE digest = ${digest}`);
      if (row === undefined) return undefined;
      const { name: _, ...allowance } = propertiesOf(rootKeyFields, row);
      return { rootKeyId: row.id, ...allowance };
    },

    async presence(nowMs) {
      // Two rows show whether there is another one than the generated one.
      const rows = await engine.read<GeneratedRow>(sql`SELECT id, digest, expires_at_ms FROM root_keys LIMIT 2`);
      if (rows.length === 0) return "none";
      if (rows.some(({ id }) => id !== generatedRootKeyId)) return "some";
      return rows.every((row) => isOver(row, nowMs)) ? "retired" : "generated";
    },

    async retireGenerated(nowMs, exceptDigests) {
      const select = sql`SELECT id, digest, expires_at_ms FROM root_keys WHERE id = ${generatedRootKeyId}`;
      const [generated] = await engine.read<GeneratedRow>(select);
      if (generated === undefined || exceptDigests.includes(generated.digest) || isOver(generated, nowMs)) return;
      await engine.atomically([
        sql`UPDATE root_keys SET expires_at_ms = ${nowMs}, updated_at_ms = ${nowMs}, version = version + 1
          WHERE id = ${generatedRootKeyId} AND digest = ${generated.digest}`,
        addRootKeysChange(engine, generated.digest),
      ]);
    },

    async announceChange() {
      await engine.atomically([addRootKeysChange(engine)]);
    },

    async addFirst(digest, start, nowMs) {
      const created = { id: generatedRootKeyId, permissions: ["*"] };
      const row = { ...newRow("rootKey", created, { id: "", atMs: nowMs, actor: "" }), digest, start };
      const [, inserted] = await engine.atomically([
        sql`DELETE FROM root_keys WHERE id = ${generatedRootKeyId} AND expires_at_ms <= ${nowMs}
          AND NOT EXISTS (SELECT 1 FROM root_keys AS other WHERE other.id <> ${generatedRootKeyId})`,
        insertRow("root_keys", row, sql`WHERE NOT EXISTS (SELECT 1 FROM root_keys) ON CONFLICT (id) DO NOTHING`),
        addRootKeysChange(engine, digest),
      ]);
      return inserted?.changes === 1;
    },
  };
}

export function createRootKeyPlan(_: SqlEngine, { created, event }: CreateRootKey): ChangePlan {
  const { id, digest, start } = created;
  return {
    target: targetOf("rootKey", id),
    first: [insertRow("root_keys", { ...newRow("rootKey", created, event), digest, start }, sql``)],
    rest: [],
    outcomeOf: () => ({ outcome: "done", changed: [] }),
  };
}

export function revokeRootKeyPlan(engine: SqlEngine, command: RevokeRootKey): ChangePlan {
  return changePlan(engine, command, { rest: [deleteRow(targetOf("rootKey", command.id), command.event)] });
}
