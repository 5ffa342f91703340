import { generatedRootKeyId, type RootKeyStore } from "../root-key-store.ts";
import { addRootKeyChange } from "./sql-change-feed.ts";
import type { SqlEngine } from "./sql-engine.ts";

export function createSqlRootKeyStore(engine: SqlEngine): RootKeyStore {
  const { db } = engine;
  return {
    async digests() {
      const rows = await db.selectFrom("root_keys").select("digest").execute();
      return rows.map((row) => row.digest);
    },
    async addFirst(digest, nowMs) {
      const [inserted] = await engine.atomically([
        db
          .insertInto("root_keys")
          .values({
            id: generatedRootKeyId,
            digest,
            start: "",
            permissions: JSON.stringify(["*"]),
            created_at_ms: nowMs,
            updated_at_ms: nowMs,
            version: 1,
            event_id: "",
          })
          .onConflict((conflict) => conflict.column("id").doNothing())
          .compile(),
        addRootKeyChange(engine, digest),
      ]);
      return inserted?.numAffectedRows === 1n;
    },
  };
}
