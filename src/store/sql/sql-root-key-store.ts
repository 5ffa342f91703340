import type { RootKeyStore } from "../root-key-store.ts";
import type { SqlEngine } from "./sql-engine.ts";

export function createSqlRootKeyStore({ db }: SqlEngine): RootKeyStore {
  return {
    async digests() {
      const rows = await db.selectFrom("root_keys").select("digest").execute();
      return rows.map((row) => row.digest);
    },
    async addFirst(digest, nowMs) {
      const result = await db
        .insertInto("root_keys")
        .values({ slot: 1, digest, created_at_ms: nowMs })
        .onConflict((conflict) => conflict.column("slot").doNothing())
        .executeTakeFirst();
      return result.numInsertedOrUpdatedRows === 1n;
    },
  };
}
