import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { installPackage, type PackedFile, packPackage, userEnvironment } from "../support/installed-package.ts";
import { startLatchkey } from "../support/latchkey-process.ts";
import { readText, root } from "../support/repository.ts";
import { testRootKey } from "../support/test-root-key.ts";

const exec = promisify(execFile);

const caller = `
import { createClient, LatchkeyError } from "latchkey/client";
const [baseUrl, rootKey] = process.argv.slice(2);
const client = createClient({ baseUrl, rootKey });
const { key } = await client.keys.createKey({ apiId: "api", remaining: 1 });
const answers = [await client.keys.verifyKey({ key }), await client.keys.verifyKey({ key })];
const refusal = await createClient({ baseUrl, rootKey: "not-a-root-key" }).keys.createKey({ apiId: "api" }).catch((e) => e);
console.log(JSON.stringify([...answers.map(({ code }) => code), refusal instanceof LatchkeyError && refusal.code]));
`;

const typedCaller = `
import { createClient, LatchkeyError, type CreateKeyRequest, type VerifyKeyResponse } from "latchkey/client";
const request: CreateKeyRequest = { apiId: "api", remaining: 1, refill: { interval: "daily", amount: 1 } };
const client = createClient({ baseUrl: "http://127.0.0.1:8080", rootKey: "root" });
const { key }: { key: string } = await client.keys.createKey(request, { idempotencyKey: "once" });
const answer: VerifyKeyResponse = await client.keys.verifyKey({ key });
export const left: number | undefined = answer.remaining;
export const isOurs = (error: unknown): boolean => error instanceof LatchkeyError && error.code === "CONFLICT";
// @ts-expect-error A misspelt field is found before it is sent.
await client.keys.createKey({ apiId: "api", ratelimt: { limit: 1, duration: 1000 } });
// @ts-expect-error So is an interval that does not exist.
await client.keys.createKey({ apiId: "api", remaining: 1, refill: { interval: "hourly", amount: 1 } });
`;

const tsconfig = {
  compilerOptions: {
    target: "es2022",
    module: "nodenext",
    lib: ["es2022", "dom"],
    types: [],
    strict: true,
    noEmit: true,
    // The package's own declarations are on trial too.
    skipLibCheck: false,
  },
  files: ["typed-caller.ts"],
};

/** A Node on this machine that is older than what the service needs. */
async function olderNode(): Promise<string | undefined> {
  for (const folder of (process.env.PATH ?? "").split(delimiter)) {
    const node = join(folder, "node");
    const version = await exec(node, ["-p", "process.versions.node"]).catch(() => undefined);
    if (version !== undefined && Number.parseInt(version.stdout, 10) < 24) return node;
  }
  return undefined;
}

// On one engine: this is about what is shipped, not about the store.
describe("the package", () => {
  const folder = mkdtempSync(join(tmpdir(), "latchkey-test-"));
  const project = join(folder, "project");
  const command = join(project, "node_modules/.bin/latchkey");
  let files: readonly PackedFile[] = [];

  beforeAll(async () => {
    mkdirSync(join(root, "dist"), { recursive: true });
    writeFileSync(join(root, "dist/left-over.js"), "");
    const packed = await packPackage(folder);
    files = packed.files;
    await installPackage(packed.tarball, project);
  }, 60_000);
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it("ships what it needs and nothing else", () => {
    const expected =
      /^(package\.json|README\.md|LICENSE|CHANGELOG\.md|docs\/[\w-]+\.md|proto\/[\w/]+\.proto|dist\/(openapi\.json|THIRD-PARTY-LICENSES|[\w-]+\.js(\.map)?|types\/(src\/sdk|gen)\/[\w/-]+\.d\.ts))$/;
    expect(files.map(({ path }) => path).filter((path) => !expected.test(path))).toEqual([]);
    const modes = new Map(files.map(({ path, mode }) => [path, mode]));
    expect(modes.get("dist/latchkey.js")).toBe(0o755);
    for (const needed of [
      "README.md",
      "LICENSE",
      "docs/errors.md",
      "proto/latchkey/v1/keys.proto",
      "dist/THIRD-PARTY-LICENSES",
      "dist/client.js",
      "dist/openapi.json",
      "dist/types/src/sdk/index.d.ts",
    ]) {
      expect(modes.has(needed), needed).toBe(true);
    }
  });

  it("serves from a project that has nothing else, and knows its version", async () => {
    const { version } = JSON.parse(readText("package.json")) as { version: string };
    expect((await exec(command, ["--version"], { env: userEnvironment })).stdout).toBe(`${version}\n`);

    const environment = { LATCHKEY_DATA_DIR: join(folder, "data"), LATCHKEY_ROOT_KEY: testRootKey };
    const { baseUrl } = await startLatchkey({ ...environment, PATH: userEnvironment.PATH }, command);
    expect(await (await fetch(`${baseUrl}/openapi.json`)).text()).toBe(readText("gen/openapi.json"));
    // The client asks for less than the service does: it works on an older Node too, where there is one.
    writeFileSync(join(project, "caller.js"), caller);
    for (const node of [process.execPath, (await olderNode()) ?? process.execPath]) {
      const { stdout } = await exec(node, [join(project, "caller.js"), baseUrl, testRootKey]);
      expect(JSON.parse(stdout)).toEqual(["VALID", "USAGE_EXCEEDED", "UNAUTHORIZED"]);
    }
  });

  it("has declarations that find mistakes", async () => {
    writeFileSync(join(project, "typed-caller.ts"), typedCaller);
    writeFileSync(join(project, "tsconfig.json"), JSON.stringify(tsconfig));
    const check = exec(join(root, "node_modules/.bin/tsc"), ["-p", project], { env: userEnvironment });
    expect((await check.catch((error: { stdout: string }) => error)).stdout).toBe("");
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
