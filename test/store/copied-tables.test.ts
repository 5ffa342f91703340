import { describe, expect, it } from "vitest";
import { copiedTables } from "../../src/store/sql/copied-tables.ts";
import { openTestStore } from "../support/open-test-store.ts";
import { query } from "../support/run-statement.ts";
import { createEmptyDatabase, hasPostgres } from "../support/test-database.ts";
import { openTestEngine, readRows } from "./sqlite/open-test-engine.ts";

/** Those that the engines keep for themselves, or that begin anew. */
const leftBehind = ["changes", "change_feed", "schema_migrations", "unfinished_copy"];
const ofPostgres = ["change_readers", "usage_writers"];

describe.runIf(hasPostgres)("latchkey copy", () => {
  it("copies every table of both engines that is not left behind on purpose, with the same columns", async () => {
    const { file } = await openTestEngine();
    const url = await createEmptyDatabase();
    await openTestStore({ url });
    const embedded = readRows(
      file,
      "SELECT m.name AS table_name, c.name, c.pk FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table'",
    );
    const { rows } = await query(
      url,
      "SELECT table_name, column_name AS name FROM information_schema.columns WHERE table_schema = 'public'",
    );
    const columnsOf = (columns: readonly Record<string, unknown>[], table: string) =>
      columns.filter(({ table_name }) => table_name === table).map(({ name }) => name);
    const tablesOf = (columns: readonly Record<string, unknown>[]) =>
      [...new Set(columns.map((c) => c.table_name))].sort();
    const copied = copiedTables.map(({ table }) => table);
    expect(tablesOf(embedded)).toEqual([...copied, ...leftBehind].sort());
    expect(tablesOf(rows)).toEqual([...copied, ...leftBehind, ...ofPostgres].sort());
    for (const { table, key } of copiedTables) {
      expect(columnsOf(embedded, table).sort(), table).toEqual(columnsOf(rows, table).sort());
      const keys = embedded.filter(({ table_name, pk }) => table_name === table && pk !== 0n);
      expect(
        keys.map(({ name }) => name),
        table,
      ).toEqual(key);
    }
  });
});
