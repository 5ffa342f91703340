import type { RootKeyStore } from "../root-key-store.ts";
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
          .values({ slot: 1, digest, created_at_ms: nowMs })
          .onConflict((conflict) => conflict.column("slot").doNothing())
          .compile(),
        addRootKeyChange(engine, digest),
      ]);
      return inserted?.numAffectedRows === 1n;
    },
  };
}
