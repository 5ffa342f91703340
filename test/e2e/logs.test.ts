import { spawn, spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { builtProgram } from "../support/artefact.ts";
import { startTestServer } from "../support/in-process-server.ts";
import { startLatchkey } from "../support/latchkey-process.ts";
import { rawClient } from "../support/raw-client.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { atTestEnd } from "../support/test-end.ts";
import { testRootKey } from "../support/test-root-key.ts";

interface Line {
  readonly level: string;
  readonly msg: string;
  readonly [field: string]: unknown;
}

const parse = (text: string) =>
  text
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Line);

// On one engine: the store has no part in this.
describe("the log", () => {
  it("tells at debug what was decided of each verification, and never a key", async () => {
    const server = await startTestServer();
    const { keys } = rawClient(server);
    const { key, keyId } = await keys.createKey({ apiId: "weather", permissions: ["docs.read"] });
    await keys.verifyKey({ key });
    await keys.verifyKey({ key, permissions: "docs.write" });
    await keys.verifyKey({ key, permissions: key });
    await keys.verifyKey({ key: "not_a_key" });
    await expect(keys.verifyKey({ key: "" })).rejects.toThrow();
    const calls = parse(server.logLines.join("")).filter(
      ({ msg, method }) => msg === "call" && method === "KeysService/VerifyKey",
    );
    expect(calls.map(({ code, keyId: id, reason }) => [code, id, reason])).toEqual([
      ["VALID", keyId, undefined],
      ["INSUFFICIENT_PERMISSIONS", keyId, "the key lacks a permission"],
      ["INSUFFICIENT_PERMISSIONS", keyId, "the key lacks a permission"],
      ["NOT_FOUND", undefined, undefined],
      ["BAD_REQUEST", undefined, undefined],
    ]);
    expect(server.logLines.join("")).not.toMatch(new RegExp(`${key}|not_a_key`));
  });

  it.each(["refused", "all"] as const)(
    "has a line for verifications if asked for: %s, from every thread",
    async (logged) => {
      const latchkey = await startLatchkey({
        LATCHKEY_DATA_DIR: tempFolder(),
        LATCHKEY_ROOT_KEY: testRootKey,
        LATCHKEY_WORKERS: "2",
        LATCHKEY_LOG_VERIFICATIONS: logged,
      });
      const { keys } = rawClient({ baseUrl: latchkey.baseUrl, rootKey: testRootKey });
      const { key, keyId } = await keys.createKey({ apiId: "weather", remaining: 1 });
      await keys.verifyKey({ key });
      const { requestId } = await keys.verifyKey({ key });
      const told = () => parse(latchkey.stderr()).filter(({ msg }) => msg === "verification");
      const refused = {
        ...{
          level: "info",
          msg: "verification",
          requestId,
          protocol: "json",
          code: "USAGE_EXCEEDED",
          keyId,
          unlogged: 0,
        },
        reason: "the counter of the key has not enough left",
      };
      await expect.poll(() => told().at(-1)).toMatchObject(refused);
      const codes = told().map(({ code }) => code);
      expect(codes).toEqual(logged === "all" ? ["VALID", "USAGE_EXCEEDED"] : ["USAGE_EXCEEDED"]);
    },
  );

  it("tells of each management call which root key made it, also of a refused one, and of decisions nothing", async () => {
    const server = await startTestServer();
    const root = rawClient(server);
    const made = await root.rootKeys.createRootKey({ permissions: ["keys.create", "keys.read", "ratelimits.limit"] });
    const limited = rawClient({ baseUrl: server.baseUrl, rootKey: made.rootKey });
    const { key, keyId } = await limited.keys.createKey({ apiId: "weather" });
    await limited.keys.getKey({ key });
    await limited.keys.verifyKey({ key });
    await limited.ratelimits.limit({ namespace: "login", identifier: "a", limit: 1, duration: 60_000 });
    await expect(limited.keys.deleteKey({ keyId })).rejects.toMatchObject({ code: "FORBIDDEN" });
    await expect(limited.keys.getKey({ keyId: key })).rejects.toMatchObject({ code: "NOT_FOUND" });
    await expect(
      rawClient({ baseUrl: server.baseUrl, rootKey: "wrong" }).keys.deleteKey({ keyId }),
    ).rejects.toMatchObject({ code: "UNAUTHORIZED" });
    await root.keys.updateKey({ keyId, name: "moved", enabled: false });

    const calls = parse(server.logLines.join("")).filter(({ msg, level }) => msg === "call" && level === "info");
    const events = await root.audit.listEvents({ targetId: made.rootKeyId });
    const [first, other] = [{ actor: events.events[0]?.rootKeyId }, { actor: made.rootKeyId }];
    expect(calls.map(({ time, requestId, seconds, ...told }) => told)).toEqual(
      [
        { method: "RootKeysService/CreateRootKey", code: "OK", ...first, rootKeyId: made.rootKeyId },
        { method: "KeysService/CreateKey", code: "OK", ...other, keyId },
        { method: "KeysService/GetKey", code: "OK", ...other, keyId },
        { method: "KeysService/DeleteKey", code: "FORBIDDEN", ...other },
        { method: "KeysService/GetKey", code: "NOT_FOUND", ...other },
        { method: "KeysService/UpdateKey", code: "OK", ...first, keyId, changed: "name,enabled" },
      ].map((told) => ({ level: "info", msg: "call", protocol: "json", ...told })),
    );
    expect(calls[0]?.requestId).toMatch(/^req_/);
  });

  it("tells at a start which settings differ from their defaults, and of secrets only that they are set", async () => {
    const latchkey = await startLatchkey({
      LATCHKEY_DATA_DIR: tempFolder(),
      LATCHKEY_ROOT_KEY: testRootKey,
      LATCHKEY_CALLS_MAX: "500",
      LATCHKEY_DRAIN_MS: "500",
    });
    const told = () => parse(latchkey.stderr()).find(({ msg }) => msg.startsWith("settings"));
    await expect.poll(told).toBeDefined();
    expect(told()).toMatchObject({
      ...{ level: "info", msg: "settings that differ from their defaults", LATCHKEY_CALLS_MAX: "500", PORT: "0" },
      LATCHKEY_ROOT_KEY: "set",
    });
    for (const name of ["REDIS_URL", "LATCHKEY_DRAIN_MS"]) expect(told()).not.toHaveProperty(name);
    expect(latchkey.stderr()).not.toContain(testRootKey);
  });

  const hasNetworkOfItsOwn = spawnSync("unshare", ["--net", "true"]).status === 0;
  it.runIf(hasNetworkOfItsOwn)("has no line about settings if all have their defaults", async () => {
    // The default ports may be taken on the machine of the test.
    const inFolder = ["unshare", "--net", "sh", "-c", 'cd "$0" && exec "$@"', tempFolder()] as const;
    const defaults = { PORT: "8080", LATCHKEY_INTERNAL_PORT: "8081" };
    const latchkey = await startLatchkey(defaults, [...inFolder, process.execPath, builtProgram(), "serve"]);
    await expect.poll(latchkey.stderr).toContain('"serving"');
    latchkey.kill("SIGTERM");
    expect(await latchkey.exited).toBe(0);
    const messages = parse(latchkey.stderr()).map(({ msg }) => msg);
    expect(messages).toEqual(expect.arrayContaining(["serving", "stopped"]));
    expect(messages.filter((msg) => msg.startsWith("settings"))).toEqual([]);
  });

  it("is text on a terminal, and JSON elsewhere, unless it is told otherwise", async () => {
    const settingsOnTerminal = async (format: string) => {
      const folder = tempFolder();
      const environment = `LATCHKEY_DATA_DIR='${folder}' PORT=0 LATCHKEY_INTERNAL_PORT=0 LATCHKEY_LOG_FORMAT=${format}`;
      const service = `${environment} exec '${process.execPath}' '${builtProgram()}' serve`;
      const shown = join(folder, "shown");
      // When it ends, the service loses its terminal and ends too.
      const terminal = spawn("script", ["-qfc", service, shown], { env: { PATH: process.env.PATH } });
      atTestEnd(() => terminal.kill());
      const lines = () => (existsSync(shown) ? readFileSync(shown, "utf8").split(/\r?\n/) : []);
      const settings = () => lines().find((line, i) => line.includes("settings") && i < lines().length - 1);
      await expect.poll(settings).toBeDefined();
      return settings();
    };
    expect(await settingsOnTerminal("auto")).toMatch(/^\S+Z INFO {2}settings that differ from their defaults PORT=0 /);
    expect(JSON.parse((await settingsOnTerminal("json")) ?? "")).toMatchObject({ PORT: "0" });
  });
});
