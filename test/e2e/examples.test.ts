import { spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { text as textOf } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { buildClient } from "../../tools/build-client.ts";
import { sized } from "../support/deep.ts";
import { startTestServer } from "../support/in-process-server.ts";
import { linkPackages } from "../support/installed-package.ts";
import { rawClient } from "../support/raw-client.ts";
import { readText, root } from "../support/repository.ts";
import { atTestEnd } from "../support/test-end.ts";

/** Files that others share. */
const helpers = ["serve-fetch.mjs", "weather-service.mjs"];
const frameworks = [
  "express",
  "fastify",
  "hono",
  "@connectrpc/connect",
  "@connectrpc/connect-node",
  "@bufbuild/protobuf",
];

describe("an example", () => {
  const folder = mkdtempSync(join(tmpdir(), "latchkey-test-"));
  beforeAll(async () => {
    cpSync(join(root, "examples"), folder, { recursive: true });
    await buildClient(join(folder, "node_modules/@latchkey/client"));
    linkPackages(folder, frameworks);
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const examples = readdirSync(join(root, "examples")).filter((name) => !helpers.includes(name));

  it("is there for every framework, and has at most 25 lines", () => {
    expect(examples).toEqual(["connect.mjs", "express.mjs", "fastify.mjs", "hono.mjs", "web.mjs"]);
    for (const name of examples)
      expect(readText(`examples/${name}`).split("\n").length - 1, name).toBeLessThanOrEqual(25);
  });

  it.each([
    ...examples.map((name) => [name, "with the packed client"] as const),
    ...sized(examples.slice(0, 1), examples).map((name) => [name, "in a clone"] as const),
  ])("in %s protects its routes, %s", async (name, where) => {
    const { baseUrl, rootKey } = await startTestServer();
    const { keys } = rawClient({ baseUrl, rootKey });
    const { key } = await keys.createKey({
      apiId: "weather",
      ownerId: "acme",
      remaining: 15,
      permissions: ["archive.read"],
    });
    const { key: reader } = await keys.createKey({ apiId: "weather", ownerId: "acme" });
    const url = await start(name, baseUrl, where === "in a clone");
    const isConnect = name === "connect.mjs";
    const get = async (path: string, key?: string) => {
      const headers = { ...(key && { authorization: `Bearer ${key}` }) };
      const method = path.charAt(0).toUpperCase() + path.slice(1);
      const response = isConnect
        ? await fetch(`${url}/weather.v1.Weather/${method}`, {
            method: "POST",
            headers: { ...headers, "content-type": "application/json" },
            body: "{}",
          })
        : await fetch(`${url}/${path}`, { headers });
      return [response.status, await response.json()];
    };
    const sunny = isConnect ? { value: "sunny for acme" } : { forecast: "sunny", for: "acme" };
    const left = isConnect ? { value: "4 left" } : { left: 4 };
    expect(await get("forecast", key)).toEqual([200, sunny]);
    expect(await get("archive", key)).toEqual([200, left]);
    expect(await get("archive", key)).toMatchObject([429, expect.anything()]);
    expect(await get("archive", reader)).toMatchObject([403, expect.anything()]);
    expect(await get("forecast")).toMatchObject([401, expect.anything()]);
  });

  it.each(examples)("in %s ends with the reason if its port is taken", async (name) => {
    const taken = createServer().listen(0, "127.0.0.1");
    atTestEnd(() => void taken.close());
    await once(taken, "listening");
    const env = { ...process.env, EXAMPLE_PORT: String((taken.address() as AddressInfo).port) };
    const child = spawn(process.execPath, [name], { cwd: folder, env, stdio: ["ignore", "ignore", "pipe"] });
    atTestEnd(() => child.kill("SIGKILL"));
    const [shown, [code]] = await Promise.all([textOf(child.stderr), once(child, "exit")]);
    expect(code).toBe(1);
    expect(shown).toContain("EADDRINUSE");
    expect(shown).not.toContain("TypeError");
  });

  it("can be run by its name, unlike the files that examples share", async () => {
    const child = spawn(process.execPath, ["tools/run-example.ts", "weather-service"], { cwd: root, stdio: "pipe" });
    atTestEnd(() => child.kill("SIGKILL"));
    const [shown, [code]] = await Promise.all([textOf(child.stderr), once(child, "exit")]);
    expect({ code, shown }).toEqual({
      code: 2,
      shown: "npm run example NAME, where NAME is one of: connect, express, fastify, hono, web\n",
    });
  });

  /** Where it says that it listens. */
  async function start(name: string, baseUrl: string, isClone: boolean): Promise<string> {
    const env = { ...process.env, LATCHKEY_URL: baseUrl, EXAMPLE_PORT: "0" };
    const { example } = (JSON.parse(readText("package.json")) as { scripts: { example: string } }).scripts;
    const [, ...command] = isClone ? [...example.split(" "), name.replace(".mjs", "")] : ["node", name];
    const cwd = isClone ? root : folder;
    const child = spawn(process.execPath, command, { cwd, env, stdio: ["ignore", "pipe", "inherit"] });
    atTestEnd(() => child.kill("SIGKILL"));
    for await (const line of createInterface(child.stdout)) {
      if (line.startsWith("listening on ")) return line.replace("listening on ", "");
    }
    throw new Error("it ended before it listened");
  }
});
