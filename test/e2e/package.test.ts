import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type PackedFile, packProgram } from "../../tools/pack.ts";
import { installPackage, olderNode, userEnvironment } from "../support/installed-package.ts";
import { startLatchkey } from "../support/latchkey-process.ts";
import { readText, root } from "../support/repository.ts";
import { testRootKey } from "../support/test-root-key.ts";

const exec = promisify(execFile);

// On one engine: this is about what is shipped, not about the store.
describe("the package", () => {
  const folder = mkdtempSync(join(tmpdir(), "latchkey-test-"));
  const project = join(folder, "project");
  const command = join(project, "node_modules/.bin/latchkey");
  let files: readonly PackedFile[] = [];

  beforeAll(async () => {
    mkdirSync(join(root, "dist"), { recursive: true });
    writeFileSync(join(root, "dist/left-over.js"), "");
    const packed = await packProgram(folder);
    files = packed.files;
    await installPackage(packed.tarball, project);
  }, 60_000);
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it("ships what it needs and nothing else", () => {
    const expected =
      /^(package\.json|README\.md|LICENSE|CHANGELOG\.md|SECURITY\.md|examples\/[\w-]+\.mjs|docs\/[\w-]+\.md|deploy\/[\w./-]+|dist\/(openapi\.json|docs\.html|THIRD-PARTY-LICENSES|[\w-]+\.js(\.map)?))$/;
    expect(files.map(({ path }) => path).filter((path) => !expected.test(path))).toEqual([]);
    const modes = new Map(files.map(({ path, mode }) => [path, mode]));
    expect(modes.get("dist/latchkey.js")).toBe(0o755);
    for (const needed of ["README.md", "LICENSE", "docs/errors.md", "dist/THIRD-PARTY-LICENSES", "dist/openapi.json"]) {
      expect(modes.has(needed), needed).toBe(true);
    }
  });

  it("is made by a command that no other script refuses, and says nothing of what developers use", () => {
    const { scripts } = JSON.parse(readText("package.json")) as { scripts: Record<string, string> };
    const hooked = Object.keys(scripts).filter((name) => `pre${name}` in scripts || `post${name}` in scripts);
    expect(hooked).toEqual([]);
    const { scripts: own, devDependencies } = JSON.parse(
      readFileSync(join(project, "node_modules/latchkey/package.json"), "utf8"),
    );
    expect([own, devDependencies]).toEqual([undefined, undefined]);
  });

  it("says which Node it needs, and a clone, which brings it along, takes older ones", () => {
    const enginesOf = (path: string) => (JSON.parse(readFileSync(path, "utf8")) as { engines: object }).engines;
    expect(enginesOf(join(project, "node_modules/latchkey/package.json"))).toEqual({ node: ">=24" });
    expect(enginesOf(join(root, "package.json"))).toEqual({ node: ">=20" });
  });

  it("serves from a project that has nothing else, and knows its version", async () => {
    const { version } = JSON.parse(readText("package.json")) as { version: string };
    expect((await exec(command, ["--version"], { env: userEnvironment })).stdout).toBe(`${version}\n`);

    const environment = { LATCHKEY_DATA_DIR: join(folder, "data"), LATCHKEY_ROOT_KEY: testRootKey };
    const latchkey = await startLatchkey({ ...environment, PATH: userEnvironment.PATH }, command);
    const { baseUrl, internalUrl, stderr } = latchkey;
    expect(await (await fetch(`${baseUrl}/openapi.json`)).text()).toBe(readText("gen/openapi.json"));
    expect(await (await fetch(baseUrl)).json()).toMatchObject({ name: "latchkey", version });
    expect(stderr()).toMatch(new RegExp(`"version":"${version}",[^\n]*"msg":"serving"`));
    const metrics = await (await fetch(`${internalUrl}/metrics`)).text();
    expect(metrics).toContain(`latchkey_build_info{version="${version}",`);
  });

  it("says on an older Node which one it needs", async ({ skip }) => {
    const node = await olderNode();
    if (node === undefined) return skip("no Node before 24 on this machine");

    await expect(exec(node, [command, "serve"])).rejects.toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringMatching(/^latchkey needs Node\.js 24 or newer; this is v\d+[^\n]+\n[^\n]+\n$/),
    });
  });
});
