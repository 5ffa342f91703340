import { once } from "node:events";
import { mkdirSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { runLatchkey } from "../support/latchkey-process.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { atTestEnd } from "../support/test-end.ts";
import { testRootKey } from "../support/test-root-key.ts";

/** A service that keeps the root keys that it is shown. */
async function startService(): Promise<{ url: string; shown: string[] }> {
  const shown: string[] = [];
  const server = createServer((req, res) => {
    shown.push(req.headers.authorization ?? "none");
    res.writeHead(200, { "content-type": "application/json" }).end('{"apis":[]}');
  });
  atTestEnd(() => server.close());
  await once(server.listen(0, "127.0.0.1"), "listening");
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, shown };
}

describe.concurrent("the profile in use", () => {
  it("is taken by commands that name none, behind what the line and the environment say", async () => {
    const HOME = tempFolder();
    const type = (line: string, extra: Record<string, string> = {}) =>
      runLatchkey(line.split(" "), { HOME, LATCHKEY_DATA_DIR: "/nonexistent", ...extra });
    const [used, other] = await Promise.all([startService(), startService()]);
    const keyFile = join(HOME, "key");
    writeFileSync(keyFile, testRootKey);
    expect(await type(`profile set staging --url ${used.url} --root-key @${keyFile}`)).toMatchObject({ code: 0 });
    expect(await type("profile use stagin")).toMatchObject({
      code: 2,
      stderr: "there is no profile stagin; did you mean staging?\n",
    });
    expect(await type("profile use staging")).toMatchObject({ code: 0, stdout: "using staging\n" });
    expect(statSync(join(HOME, ".config/latchkey/in-use")).mode & 0o777).toBe(0o600);
    expect((await type("profile list")).stdout).toBe(`NAME     URL\nstaging  ${used.url} (in use)\n`);
    expect(await type("apis list")).toMatchObject({ code: 0 });
    expect(used.shown).toEqual([`Bearer ${testRootKey}`]);

    // Its root key is sent to no other service.
    expect(await type(`apis list --url ${other.url}`)).toMatchObject({ code: 2 });
    expect(await type("apis list", { LATCHKEY_URL: other.url })).toMatchObject({ code: 2 });
    const own = { LATCHKEY_URL: other.url, LATCHKEY_ROOT_KEY: "r".repeat(32) };
    expect(await type("apis list", own)).toMatchObject({ code: 0 });
    expect(other.shown).toEqual([`Bearer ${"r".repeat(32)}`]);
    expect(used.shown).toHaveLength(1);

    expect(await type("profile leave")).toMatchObject({ code: 0, stdout: "using no profile\n" });
    expect(await type("apis list")).toMatchObject({ code: 2, stderr: expect.stringContaining("there is no root key") });
    await type("profile use staging");
    await type("profile remove staging");
    expect(await type("apis list")).toMatchObject({ code: 2, stderr: expect.stringContaining("there is no root key") });
  });

  it.each<[string, string, (file: string) => void]>([
    ["cannot be read", "ELOOP", (file) => symlinkSync(file, file)],
    ["is empty", "it is empty", (file) => writeFileSync(file, "\n")],
  ])("is an error until profile leave, not no profile, where its file %s", async (_, problem, damage) => {
    const HOME = tempFolder();
    const type = (line: string) => runLatchkey(line.split(" "), { HOME, LATCHKEY_DATA_DIR: "/nonexistent" });
    const folder = join(HOME, ".config/latchkey");
    mkdirSync(folder, { recursive: true });
    damage(join(folder, "in-use"));
    const stderr = `the profile in use cannot be read from ${folder}/in-use: ${problem}. latchkey profile leave removes this file\n`;
    expect(await type("apis list")).toEqual({ code: 1, stdout: "", stderr });
    expect(await type("profile leave")).toMatchObject({ code: 0 });
    expect(await type("apis list")).toMatchObject({ code: 2, stderr: expect.stringContaining("there is no root key") });
  });

  it("is none where there can be no file", async () => {
    const environment = { HOME: "/dev/null", LATCHKEY_DATA_DIR: "/nonexistent" };
    const stderr = expect.stringContaining("there is no root key");
    expect(await runLatchkey(["apis", "list"], environment)).toMatchObject({ code: 2, stderr });
  });

  it.each([
    ["profile use", "use with one name"],
    ["profile use a b", "use with one name"],
    ["profile leave a", "leave without a name"],
    ["profile use a --url http://127.0.0.1", "use without flags"],
    ["profile sue a", "set, use, leave, list, remove; did you mean use?"],
  ])("is not changed by %s", async (line, wanted) => {
    const stderr = `latchkey profile takes ${wanted}\nlatchkey profile --help tells how it is used\n`;
    expect(await runLatchkey(line.split(" "), { HOME: tempFolder() })).toEqual({ code: 2, stdout: "", stderr });
  });
});
