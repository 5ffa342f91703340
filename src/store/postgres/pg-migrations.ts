import { type Migration, migrations } from "../sql/migrations.ts";
import { sql } from "../sql/sql.ts";

/** The shared tables, and what only this engine needs. `usage_writers` serves the lanes of both ledgers. */
export const pgMigrations: readonly Migration[] = [
  ...migrations,
  {
    name: "pg-0001-first",
    up: () => [
      sql`CREATE TABLE usage_writers (id text PRIMARY KEY, seq bigint NOT NULL, nonce text NOT NULL, result jsonb,
        updated_at timestamptz NOT NULL)`,
      sql`CREATE TABLE change_readers (id text PRIMARY KEY, heartbeats bigint NOT NULL, updated_at timestamptz NOT NULL)`,
      // Compared byte by byte, as the embedded engine does: ids then sort by time, and a prefix is a range. What refers to
      // one of them too: otherwise a join could not use its index.
      ...Object.entries({
        keys: ["id", "start", "name"],
        owners: ["list_id"],
        counters: ["subject"],
        permit_windows: ["subject"],
        ending_secrets: ["key_id"],
        events: ["id"],
      }).flatMap(([table, columns]) =>
        columns.map(
          (column) => sql`ALTER TABLE ${sql.ref(table)} ALTER COLUMN ${sql.ref(column)} TYPE text COLLATE "C"`,
        ),
      ),
      // Rows that change with every batch keep their new version on the same page, beside the old one.
      ...Object.entries({ usage_writers: 20, change_readers: 20, counters: 50, permit_windows: 50 }).map(
        ([table, percent]) => sql`ALTER TABLE ${sql.ref(table)} SET (fillfactor = ${sql.lit(percent)})`,
      ),
      // For rows that are added by hand.
      sql`ALTER TABLE changes ALTER COLUMN transaction_id SET DEFAULT pg_current_xact_id()::text::bigint`,
    ],
  },
  {
    name: "pg-0002-readings",
    up: () => [sql`ALTER TABLE readings ALTER COLUMN subject TYPE text COLLATE "C"`],
  },
];
