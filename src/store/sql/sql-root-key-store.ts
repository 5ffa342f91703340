import { sql } from "kysely";
import { rootKeyFields } from "../../domain/resources.ts";
import { generatedRootKeyId, type RootKeyStore } from "../root-key-store.ts";
import { columnNames, propertiesOf } from "./field-columns.ts";
import { addRootKeysChange } from "./sql-change-feed.ts";
import type { SqlEngine } from "./sql-engine.ts";
import { text, whole } from "./sql-values.ts";

export function createSqlRootKeyStore(engine: SqlEngine): RootKeyStore {
  const { db } = engine;
  return {
    async findByDigest(digest) {
      const row = await db
        .selectFrom("root_keys")
        .select(["id", ...columnNames(rootKeyFields)])
        .where("digest", "=", digest)
        .executeTakeFirst();
      if (row === undefined) return undefined;
      const { name: _, ...allowance } = propertiesOf(rootKeyFields, row);
      return { rootKeyId: row.id, ...allowance };
    },

    async presence(nowMs) {
      // Two tell whether there is another one than the generated one.
      const rows = await db.selectFrom("root_keys").select(["id", "expires_at_ms"]).limit(2).execute();
      if (rows.length === 0) return "none";
      const isRetired = ({ id, expires_at_ms }: (typeof rows)[number]) =>
        id === generatedRootKeyId && expires_at_ms !== null && Number(expires_at_ms) <= nowMs;
      return rows.every(isRetired) ? "retired" : "some";
    },

    async retireGenerated(nowMs, exceptDigests) {
      const now = whole(nowMs);
      const [generated] = await db
        .selectFrom("root_keys")
        .select(["digest", "expires_at_ms"])
        .where("id", "=", generatedRootKeyId)
        .execute();
      if (generated === undefined || exceptDigests.includes(generated.digest)) return;
      if (generated.expires_at_ms !== null && Number(generated.expires_at_ms) <= nowMs) return;
      await engine.atomically([
        db
          .updateTable("root_keys")
          .set(({ eb }) => ({ expires_at_ms: now, updated_at_ms: now, version: eb("version", "+", 1) }))
          .where("id", "=", generatedRootKeyId)
          .where("digest", "=", generated.digest)
          .compile(),
        addRootKeysChange(engine, generated.digest),
      ]);
    },

    async announceChange() {
      await engine.atomically([addRootKeysChange(engine)]);
    },

    async addFirst(digest, start, nowMs) {
      const now = whole(nowMs);
      const values = [text(generatedRootKeyId), text(digest), text(start), text(JSON.stringify(["*"])), now, now];
      const [, inserted] = await engine.atomically([
        sql`DELETE FROM root_keys WHERE id = ${generatedRootKeyId} AND expires_at_ms <= ${now}
          AND NOT EXISTS (SELECT 1 FROM root_keys AS other WHERE other.id <> ${generatedRootKeyId})`.compile(db),
        sql`INSERT INTO root_keys (id, digest, start, permissions, created_at_ms, updated_at_ms, version, event_id)
          SELECT ${sql.join(values)}, 1, '' WHERE NOT EXISTS (SELECT 1 FROM root_keys)
          ON CONFLICT (id) DO NOTHING`.compile(db),
        addRootKeysChange(engine, digest),
      ]);
      return inserted?.numAffectedRows === 1n;
    },
  };
}
