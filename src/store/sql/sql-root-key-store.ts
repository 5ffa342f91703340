import { sql } from "kysely";
import { generatedRootKeyId, type RootKeyStore } from "../root-key-store.ts";
import { allowanceOf } from "./change-root-keys.ts";
import { addRootKeyChange } from "./sql-change-feed.ts";
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

    async hasAny() {
      return (await db.selectFrom("root_keys").select("id").limit(1).executeTakeFirst()) !== undefined;
    },

    async addFirst(digest, start, nowMs) {
      const now = whole(nowMs);
      const [inserted] = await engine.atomically([
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
