import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import type { Readable } from "node:stream";
import { describe, expect, it, vi } from "vitest";
import { builtProgram } from "../support/artefact.ts";
import { rawClient } from "../support/raw-client.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { atTestEnd } from "../support/test-end.ts";
import { testRootKey } from "../support/test-root-key.ts";

/** A service whose log nobody reads yet. Its address is on standard output. */
async function startUnread(level: string) {
  const child: ChildProcessByStdio<null, Readable, Readable> = spawn(process.execPath, [builtProgram(), "serve"], {
    stdio: ["ignore", "pipe", "pipe"],
    env: {
      LATCHKEY_DATA_DIR: tempFolder(),
      LATCHKEY_ROOT_KEY: testRootKey,
      LATCHKEY_LOG_LEVEL: level,
      LATCHKEY_DRAIN_MS: "0",
      LATCHKEY_INTERNAL_PORT: "0",
      PORT: "0",
    },
  });
  atTestEnd(() => child.kill("SIGKILL"));
  const [banner] = (await once(child.stdout, "data")) as [Buffer];
  const baseUrl = /http:\/\/127\.0\.0\.1:\d+/.exec(String(banner))?.[0] ?? "";
  return { child, client: rawClient({ baseUrl, rootKey: testRootKey }) };
}

describe.concurrent("a service goes on serving, and stops in order,", () => {
  it("when whoever reads its log and its output is gone", async () => {
    const { child, client } = await startUnread("info");
    child.stderr.destroy();
    child.stdout.destroy();
    const { keyId } = await client.keys.createKey({ apiId: "api" });
    for (let i = 0; i < 5; i++) expect(await client.keys.getKey({ keyId })).toMatchObject({ keyId });
    child.kill("SIGTERM");
    expect(await once(child, "exit")).toEqual([0, null]);
  });

  it("when nobody reads its log: what has no room is dropped, and counted when there is room", async () => {
    const { child, client } = await startUnread("debug");
    const { key } = await client.keys.createKey({ apiId: "api" });
    const verifications = 10_000;
    for (let i = 0; i < verifications; i += 50)
      await Promise.all(Array.from({ length: 50 }, () => client.keys.verifyKey({ key })));

    let text = "";
    child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
    });
    const lines = () => text.split("\n").filter((line) => line !== "");
    const told = () =>
      lines()
        .map((line) => JSON.parse(line) as { msg: string; dropped?: number; method?: string })
        .filter(({ msg }) => msg.startsWith("lines of the log were dropped"));
    await vi.waitFor(async () => {
      await client.keys.verifyKey({ key });
      expect(text.endsWith("\n") && told().length).toBeTruthy();
    });
    child.kill("SIGTERM");
    expect(await once(child, "close")).toEqual([0, null]);
    // The log can be full more than once.
    const dropped = told().reduce((sum, line) => sum + (line.dropped ?? 0), 0);
    expect(dropped).toBeGreaterThan(0);
    const kept = lines().filter((line) => line.includes("KeysService/VerifyKey")).length;
    expect(kept + dropped).toBeGreaterThanOrEqual(verifications);
  });
});
