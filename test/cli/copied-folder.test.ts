import { rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { runLatchkey, startLatchkey } from "../support/latchkey-process.ts";
import { rawClient } from "../support/raw-client.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { createEmptyDatabase, hasPostgres } from "../support/test-database.ts";
import { testRootKey } from "../support/test-root-key.ts";

const settings = { PORT: "0", LATCHKEY_INTERNAL_PORT: "0", LATCHKEY_DRAIN_MS: "0", LATCHKEY_ROOT_KEY: testRootKey };

async function serve<Result>(
  environment: Record<string, string>,
  use: (keys: ReturnType<typeof rawClient>["keys"]) => Promise<Result>,
): Promise<Result> {
  const server = await startLatchkey({ ...settings, ...environment });
  const result = await use(rawClient({ baseUrl: server.baseUrl, rootKey: testRootKey }).keys);
  server.kill("SIGTERM");
  expect(await server.exited).toBe(0);
  return result;
}

describe.runIf(hasPostgres)("a data folder that was copied to Postgres", () => {
  it("is not served beside its copy, unless somebody gives the copy up", async () => {
    const folder = tempFolder();
    const embedded = { LATCHKEY_DATA_DIR: folder };
    const { key } = await serve(embedded, (keys) => keys.createKey({ apiId: "api", remaining: 2 }));

    // A copy that cannot begin changes nothing.
    const failed = await runLatchkey(["copy"], { ...embedded, LATCHKEY_COPY_TO: "postgres://127.0.0.1:1/none" });
    expect(failed).toMatchObject({ code: 1 });
    expect(await serve(embedded, (keys) => keys.verifyKey({ key }))).toMatchObject({ valid: true, remaining: 1 });

    const url = await createEmptyDatabase();
    expect(await runLatchkey(["copy"], { ...embedded, LATCHKEY_COPY_TO: url })).toMatchObject({ code: 0 });
    const mark = join(folder, "copied-to-postgres");
    const refused = await runLatchkey(["serve"], { ...settings, ...embedded });
    const problem = `the data folder ${folder} was copied to Postgres, and the same uses would be counted twice`;
    const fix = `Set DATABASE_URL. To give up the copy and serve this folder all the same, remove ${mark}.`;
    expect(refused).toEqual({ code: 1, stdout: "", stderr: `latchkey cannot start:\n  - ${problem}. ${fix}\n` });
    const examined = await runLatchkey(["doctor"], { ...settings, ...embedded });
    expect(examined).toMatchObject({ code: 1, stdout: expect.stringContaining(`error: ${problem}\n`) });
    expect(examined.stdout).toContain(`fix:  ${fix}\n`);

    const target = { ...embedded, DATABASE_URL: url };
    expect(await serve(target, (keys) => keys.verifyKey({ key }))).toMatchObject({ valid: true, remaining: 0 });

    rmSync(mark);
    expect(await serve(embedded, (keys) => keys.verifyKey({ key }))).toMatchObject({ valid: true, remaining: 0 });
  });
});
