import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type LatchkeyProcess, runLatchkey, startLatchkey } from "../support/latchkey-process.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { testRootKey } from "../support/test-root-key.ts";

let latchkey: LatchkeyProcess;
let folder: string;
const undos: (() => void)[] = [];
beforeAll(async () => {
  folder = tempFolder((undo) => undos.push(undo));
  const settings = { LATCHKEY_DATA_DIR: join(folder, "data"), LATCHKEY_ROOT_KEY: testRootKey };
  latchkey = await startLatchkey(settings, undefined, (undo) => undos.push(undo));
});
afterAll(() => {
  for (const undo of undos) undo();
});

/** Types a command, with words without spaces, for the service of this file. */
function type(line: string, environment: Record<string, string> = {}) {
  const own = { LATCHKEY_URL: latchkey.baseUrl, LATCHKEY_ROOT_KEY: testRootKey, HOME: folder };
  return runLatchkey(line.split(" "), { ...own, ...environment });
}

describe.concurrent("without a root key", () => {
  it("a profile is written with a remark, and commands that need one say how the profile gets it", async () => {
    writeFileSync(join(folder, "empty"), "\n");
    const set = await type(`profile set keyless --url ${latchkey.baseUrl} --root-key @${join(folder, "empty")}`);
    expect(set).toMatchObject({ code: 0, stdout: expect.stringMatching(/^written to .+keyless\.json\n$/) });
    expect(set.stderr).toBe("no root key was given: commands with this profile can verify only\n");
    const { code, stdout, stderr } = await type("apis list --profile keyless");
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toContain(
      "the profile keyless has no root key: latchkey profile set keyless --url http://127.0.0.1",
    );
    expect(stderr).not.toContain("LATCHKEY_ROOT_KEY");
  });

  it("a command names everything where it has looked for one", async () => {
    const dataDir = join(folder, "other-data");
    mkdirSync(dataDir);
    const keyless = { LATCHKEY_ROOT_KEY: "", LATCHKEY_DATA_DIR: dataDir };
    const [embedded, postgres, elsewhere] = await Promise.all([
      type("apis list", keyless),
      type("apis list", { ...keyless, DATABASE_URL: "postgres://127.0.0.1:1/none" }),
      type("apis list", { ...keyless, LATCHKEY_URL: "https://192.0.2.1" }),
    ]);
    const unset = "there is no root key: LATCHKEY_ROOT_KEY and LATCHKEY_ROOT_KEY_FILE are not set, and";
    expect(embedded.stderr).toContain(`${unset} ${dataDir}/root-key cannot be read: ENOENT.`);
    expect(postgres.stderr).toContain(`${unset} ${dataDir}/root-key-postgres cannot be read: ENOENT.`);
    expect(elsewhere.stderr).toContain(`${unset} the key of a data folder is for services on this machine only.`);
    for (const { code, stdout } of [embedded, postgres, elsewhere])
      expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  });
});
