import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import vm from "node:vm";
import { gzipSync } from "node:zlib";
import { publint } from "publint";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Client, ClientOptions } from "../../src/sdk/index.ts";
import { buildClient } from "../../tools/build-client.ts";
import { packFolder } from "../../tools/pack.ts";
import { startTestServer } from "../support/in-process-server.ts";
import { installPackage, linkPackages, olderNode, userEnvironment } from "../support/installed-package.ts";
import { npmPackage } from "../support/npm-programs.ts";
import { readText, root } from "../support/repository.ts";

const exec = promisify(execFile);

const body = `
const [baseUrl, rootKey] = process.argv.slice(2);
const client = createClient({ baseUrl, rootKey, apiId: "api" });
const { key } = await client.keys.createKey({ remaining: 1 });
const answers = [await client.keys.verifyKey({ key }), await client.keys.verifyKey({ key })];
const refusal = await createClient({ baseUrl, rootKey: "not-a-root-key" }).keys.createKey({ apiId: "api" }).catch((e) => e);
const listed = [];
for await (const { apiId } of client.keys.listKeys({})) listed.push(apiId);
console.log(JSON.stringify([...answers.map(({ code }) => code), isLatchkeyError(refusal) && refusal.code, ...listed]));
`;
const imported = `import { createClient, isLatchkeyError } from "@latchkey/client";\n${body}`;
const required = `const { createClient, isLatchkeyError } = require("@latchkey/client");\n(async () => {${body}})();`;

const typed = `
import { createClient, isLatchkeyError, type CreateKeyRequest, type Verification } from "@latchkey/client";
const request: CreateKeyRequest = { apiId: "api", remaining: 1, refill: { interval: "daily", amount: 1 } };
const client = createClient({ baseUrl: "http://127.0.0.1:8080", rootKey: "root" });
export async function all() {
  const { key }: { key: string } = await client.keys.createKey(request, { idempotencyKey: "once" });
  const answer: Verification = await client.keys.verifyKey({ key });
  const left: number | undefined = answer.remaining;
  for await (const { ownerId } of client.owners.listOwners({})) console.log(ownerId.length, left);
  // @ts-expect-error A misspelt field is found before it is sent.
  await client.keys.createKey({ apiId: "api", ratelimt: { limit: 1, duration: 1000 } });
  // @ts-expect-error So is an interval that does not exist.
  await client.keys.createKey({ apiId: "api", remaining: 1, refill: { interval: "hourly", amount: 1 } });
  // @ts-expect-error A client of no API in particular needs to know the key's.
  await client.keys.createKey({ remaining: 1 });
  await createClient({ baseUrl: "http://127.0.0.1:8080", apiId: "api" }).keys.createKey({ remaining: 1 });
  // @ts-expect-error There are three answers to an outage.
  createClient({ baseUrl: "http://127.0.0.1:8080", onUnavailable: "alow" });
}
export const isOurs = (error: unknown): boolean => isLatchkeyError(error) && error.code === "CONFLICT";
`;

const typedRoutes = `
import { createClient } from "@latchkey/client";
import { protect as inExpress } from "@latchkey/client/express";
import { protect as inFastify } from "@latchkey/client/fastify";
import { protect as inHono } from "@latchkey/client/hono";
import { protect as inWeb } from "@latchkey/client/web";
import { latchkey, protect as inConnect } from "@latchkey/client/connect";
import { createContextValues } from "@connectrpc/connect";
import express from "express";
import fastify from "fastify";
import { Hono } from "hono";
const client = createClient({ baseUrl: "http://127.0.0.1:8080", apiId: "api" });
express().get("/", inExpress(client, { permissions: "docs.read" }), (request, response) => {
  const owner: string | undefined = request.latchkey?.ownerId;
  response.send(owner);
});
express().get("/", inExpress(client, { perRequest: (request: express.Request) => ({ ip: request.ip }) }));
fastify().get("/", { onRequest: inFastify(client) }, async (request) => request.latchkey?.meta);
new Hono().get("/", inHono(client, { remaining: { cost: 10 } }), (context) => context.text(context.get("latchkey").code));
export const GET = inWeb(client, {}, (_, key) => Response.json(key.keyId));
export const interceptors = [inConnect(client)];
export const owner: string | undefined = createContextValues().get(latchkey)?.ownerId;
// @ts-expect-error A misspelt field is found.
inExpress(client, { permission: "docs.read" });
`;

const resolutions = {
  node16: { module: "node16", moduleResolution: "node16" },
  nodenext: { module: "nodenext", moduleResolution: "nodenext" },
  bundler: { module: "esnext", moduleResolution: "bundler" },
};

describe("the package @latchkey/client", () => {
  const folder = mkdtempSync(join(tmpdir(), "latchkey-test-"));
  const project = join(folder, "project");
  let tarball: string;
  const installed = join(project, "node_modules/@latchkey/client");

  beforeAll(async () => {
    await buildClient(join(folder, "client"));
    tarball = packFolder(join(folder, "client"), folder).tarball;
    await installPackage(tarball, project);
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const manifest = () => JSON.parse(readFileSync(join(installed, "package.json"), "utf8")) as Record<string, unknown>;

  it("depends on nothing, and has the version of the service", () => {
    const { dependencies, version, exports } = manifest();
    expect([dependencies, version]).toEqual([undefined, JSON.parse(readText("package.json")).version]);
    const listed = Object.keys(exports as object).map((path) => path.replace(/^\.\/?/, ""));
    expect(listed).toEqual(["", "express", "fastify", "hono", "web", "connect", "proto/*", "package.json"]);
    expect(readFileSync(join(installed, "proto/latchkey/v1/keys.proto"), "utf8")).toContain("service KeysService");
  });

  it("takes at most 6 KB of a download, without middleware", () => {
    for (const kind of ["esm", "cjs"]) {
      expect(gzipSync(readFileSync(join(installed, `dist/${kind}/index.js`))).length).toBeLessThanOrEqual(6 * 1024);
    }
  });

  it("is imported and required, on the Node that runs npm and on the service's own", async () => {
    const { baseUrl, rootKey } = await startTestServer();
    writeFileSync(join(project, "imported.mjs"), imported);
    writeFileSync(join(project, "required.cjs"), required);
    for (const node of new Set([process.execPath, (await olderNode()) ?? process.execPath])) {
      for (const script of ["imported.mjs", "required.cjs"]) {
        const { stdout } = await exec(node, [join(project, script), baseUrl, rootKey]);
        expect(JSON.parse(stdout).slice(0, 4)).toEqual(["VALID", "USAGE_EXCEEDED", "UNAUTHORIZED", "api"]);
      }
    }
  });

  it("loads each middleware alone, both ways", async () => {
    linkPackages(project, ["@connectrpc/connect", "@bufbuild/protobuf"]);
    for (const entry of ["express", "fastify", "hono", "web", "connect"]) {
      const name = `@latchkey/client/${entry}`;
      const both = `const a = require("${name}"); import("${name}").then((b) => console.log(typeof a.protect, typeof b.protect))`;
      writeFileSync(join(project, "both.cjs"), both);
      expect((await exec(process.execPath, [join(project, "both.cjs")])).stdout).toBe("function function\n");
    }
  });

  it("needs nothing of Node", async () => {
    const { baseUrl, rootKey } = await startTestServer();
    const there = { fetch, Headers, URL, AbortController, AbortSignal, setTimeout, clearTimeout, crypto };
    const context = vm.createContext(there);
    const run = (file: string) => {
      const module = { exports: {} as Record<string, unknown> };
      const code = readFileSync(join(installed, "dist/cjs", file), "utf8");
      vm.runInContext(`(function (module, exports) {${code}\n})`, context)(module, module.exports);
      return module.exports;
    };
    const { createClient } = run("index.js") as { createClient: (options: ClientOptions) => Client };
    const { keys } = createClient({ baseUrl, rootKey });
    const { key } = await keys.createKey({ apiId: "api" });
    expect(await keys.verifyKey({ key })).toMatchObject({ valid: true });
    for (const file of ["express.js", "fastify.js", "hono.js", "web.js"]) expect(run(file)).toHaveProperty("protect");
  });

  it.each(Object.entries(resolutions))("has declarations that find mistakes, resolved as %s", async (_, options) => {
    linkPackages(project, [
      "express",
      "@types/express",
      "fastify",
      "hono",
      "@connectrpc/connect",
      "@bufbuild/protobuf",
    ]);
    const compilerOptions = {
      ...options,
      target: "es2022",
      lib: ["es2022", "dom"],
      types: [],
      strict: true,
      exactOptionalPropertyTypes: true,
      noEmit: true,
    };
    // The package's own declarations are on trial too; with others beside them, those are not.
    for (const [file, skipLibCheck] of [
      ["typed", false],
      ["routes", true],
    ] as const) {
      writeFileSync(join(project, `${file}.ts`), file === "typed" ? typed : typedRoutes);
      const config = {
        compilerOptions: { ...compilerOptions, skipLibCheck, esModuleInterop: true },
        files: [`${file}.ts`],
      };
      writeFileSync(join(project, "tsconfig.json"), JSON.stringify(config));
      const check = exec(join(root, "node_modules/.bin/tsc"), ["-p", project], { env: userEnvironment });
      expect((await check.catch((error: { stdout: string }) => error)).stdout).toBe("");
    }
  });

  it("resolves in every way of TypeScript's and Node's", async () => {
    // Too heavy for everybody to install.
    const attw = join(npmPackage("@arethetypeswrong/cli", "0.18.5"), ".bin/attw");
    const check = () =>
      exec(attw, ["--profile", "node16", "--format", "ascii", "--exclude-entrypoints", "proto/*", "--", tarball]);
    await check().catch((error: { stdout: string }) => expect.unreachable(error.stdout));
  });

  it("has a manifest without faults", async () => {
    const { messages } = await publint({ pkgDir: installed, pack: false, strict: true });
    expect(messages).toEqual([]);
    writeFileSync(join(installed, "dist/esm/index.js"), "module.exports = 1;");
    expect((await publint({ pkgDir: installed, pack: false })).messages).not.toEqual([]);
  });
});
