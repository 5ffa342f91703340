import { sql } from "kysely";
import { generatedRootKeyId, type RootKeyStore } from "../root-key-store.ts";
import { allowanceOf } from "./change-root-keys.ts";
import { addChangeOfRootKeys, addRootKeyChange } from "./sql-change-feed.ts";
import type { SqlEngine } from "./sql-engine.ts";
import { text, whole } from "./sql-values.ts";

export function createSqlRootKeyStore(engine: SqlEngine): RootKeyStore {
  const { db } = engine;
  return {
    async findByDigest(digest) {
      const row = await db
        .selectFrom("root_keys")
        .select(["id", "permissions", "api_ids", "expires_at_ms"])
        .where("digest", "=", digest)
        .executeTakeFirst();
      return row && { rootKeyId: row.id, ...allowanceOf(row) };
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
        addRootKeyChange(engine, generated.digest),
      ]);
    },

    async announceChange() {
      await engine.atomically([addChangeOfRootKeys(engine)]);
    },

    async addFirst(digest, start, nowMs) {
      const now = whole(nowMs);
      const [, inserted] = await engine.atomically([
        db
          .deleteFrom("root_keys")
          .where("id", "=", generatedRootKeyId)
          .where("expires_at_ms", "<=", now)
          .where(({ not, exists, selectFrom }) =>
            not(
              exists(selectFrom("root_keys as other").select("other.id").where("other.id", "<>", generatedRootKeyId)),
            ),
          )
          .compile(),
        db
          .insertInto("root_keys")
          .columns(["id", "digest", "start", "permissions", "created_at_ms", "updated_at_ms", "version", "event_id"])
          // `change_feed` has one row.
          .expression(
            db
              .selectFrom("change_feed")
              .where(({ not, exists, selectFrom }) => not(exists(selectFrom("root_keys").select("root_keys.id"))))
              .select([
                text(generatedRootKeyId).as("id"),
                text(digest).as("digest"),
                text(start).as("start"),
                text(JSON.stringify(["*"])).as("permissions"),
                now.as("created_at_ms"),
                now.as("updated_at_ms"),
                sql<number>`1`.as("version"),
                text("").as("event_id"),
              ]),
          )
          .onConflict((conflict) => conflict.column("id").doNothing())
          .compile(),
        addRootKeyChange(engine, digest),
      ]);
      return inserted?.numAffectedRows === 1n;
    },
  };
}
