import { describe, expect, it } from "vitest";
import { sampleKey } from "../../contract/sample-keys.ts";
import { createKey, deleteApiKeys, stopApi } from "../../support/manage.ts";
import { openTestStore } from "../../support/open-test-store.ts";
import { query } from "../../support/run-statement.ts";
import { TestClock } from "../../support/test-clock.ts";
import { createTestDatabase, hasPostgres } from "../../support/test-database.ts";

describe.runIf(hasPostgres)("keys of an API that is deleted", () => {
  it("go in pieces of the size that was asked for, whatever plan Postgres chooses", async () => {
    const url = await createTestDatabase();
    const name = new URL(url).pathname.slice(1);
    // What is left is a nested loop that evaluates the inner side again for each row of the outer one. It looks so expensive
    // that Postgres would compile it, which takes seconds.
    const off = ["hashjoin", "mergejoin", "hashagg", "sort", "material", "memoize"];
    for (const setting of ["jit", ...off.map((method) => `enable_${method}`)]) {
      await query(url, `ALTER DATABASE ${name} SET ${setting} = off`);
    }
    const { management } = await openTestStore({ url });
    const clock = new TestClock();
    for (let i = 0; i < 8; i++) await createKey(management, sampleKey(clock, { apiId: "api" }));
    await stopApi(management, "api");
    const deleted = [];
    for (let piece = 0; piece < 4; piece++) deleted.push(await deleteApiKeys(management, "api", 3));
    expect(deleted).toMatchObject([3, 3, 2, 0].map((count) => ({ answer: { deleted: count } })));
  });
});
