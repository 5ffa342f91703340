import { execFile } from "node:child_process";
import { cpSync, mkdirSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { olderNode } from "../support/installed-package.ts";
import { startLatchkey } from "../support/latchkey-process.ts";
import { readText, root } from "../support/repository.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { testRootKey } from "../support/test-root-key.ts";

const exec = promisify(execFile);

/** What a clone has after `npm ci`. npx links it and has it run `prepare` the first time. */
function makeClone(): string {
  const clone = tempFolder();
  for (const name of ["bin", "package.json"]) cpSync(join(root, name), join(clone, name), { recursive: true });
  for (const name of ["src", "gen", "proto", "tools", "node_modules"]) symlinkSync(join(root, name), join(clone, name));
  return clone;
}

/** The environment of somebody whose own Node is older than the one that the project brings, if there is such a Node. */
async function environmentOf(home: string): Promise<Record<string, string>> {
  const folders = [dirname((await olderNode()) ?? process.execPath), "/usr/local/bin", "/usr/bin", "/bin"];
  return { PATH: folders.join(delimiter), HOME: home };
}

// On one engine: this is about how the program is started.
describe("the command of a clone", () => {
  it("works with npx after npm ci, without a build", async () => {
    const clone = makeClone();
    const env = { ...(await environmentOf(clone)), npm_config_offline: "true" };
    const { version } = JSON.parse(readText("package.json")) as { version: string };
    expect((await exec("npx", ["latchkey", "--version"], { cwd: clone, env })).stdout).toBe(`${version}\n`);
    await expect(exec("npx", ["latchkey", "keys", "list"], { cwd: clone, env })).rejects.toMatchObject({
      code: 2,
      stderr: expect.stringContaining("there is no root key"),
    });
  });

  it("passes signals on, and exit codes back", async () => {
    const clone = makeClone();
    const environment = { LATCHKEY_DATA_DIR: tempFolder(), LATCHKEY_ROOT_KEY: testRootKey, LATCHKEY_DRAIN_MS: "0" };
    const own = { ...environment, ...(await environmentOf(clone)) };
    const latchkey = await startLatchkey(own, join(clone, "bin/latchkey"));
    latchkey.kill("SIGTERM");
    expect(await latchkey.exited).toBe(0);
    expect(latchkey.stderr()).toContain('"signal":"SIGTERM"');
  });

  it("runs what was built, unless the sources are newer, also through a link", async () => {
    const clone = makeClone();
    const built = join(clone, "dist/latchkey.js");
    mkdirSync(join(clone, "dist"));
    writeFileSync(built, "console.log(process.version, process.argv.slice(2)); process.exit(7)");
    symlinkSync(join(clone, "bin/latchkey"), join(clone, "link"));
    const env = await environmentOf(clone);
    const started = exec(join(clone, "link"), ["a b", "*"], { env });
    await expect(started).rejects.toMatchObject({ code: 7, stdout: `${process.version} [ 'a b', '*' ]\n` });
    utimesSync(built, 0, 0);
    expect((await exec(join(clone, "link"), ["--version"], { env })).stdout).toMatch(/^\d+\.\d+\.\d+\S*\n$/);
  });

  it("says that npm ci is missing", async () => {
    const clone = makeClone();
    rmSync(join(clone, "node_modules"));
    const started = exec(join(clone, "bin/latchkey"), [], { env: await environmentOf(clone) });
    await expect(started).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`type npm ci in ${clone}`),
    });
  });
});
