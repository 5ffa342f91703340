import { copyFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { startTestServer } from "../support/in-process-server.ts";
import { runLatchkey, startLatchkey } from "../support/latchkey-process.ts";
import { rawClient } from "../support/raw-client.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { testRootKey } from "../support/test-root-key.ts";

/** The file is compared every second. A probe joins a comparison that is under way, which may have begun before the loss. */
const noticed = { timeout: 60_000 };
const unavailable = { code: "SERVICE_UNAVAILABLE", status: 503 };

/** A service in a folder below a temporary one, with a key in memory, a counted one and one that it has not seen. */
async function serve() {
  const dataDir = join(tempFolder(), "data");
  const server = await startTestServer({ settings: { dataDir } });
  const client = rawClient(server).keys;
  const [remembered, counted, unseen] = await Promise.all([
    client.createKey({ apiId: "api" }),
    client.createKey({ apiId: "api", remaining: 100 }),
    client.createKey({ apiId: "api" }),
  ]);
  for (const { key } of [remembered, counted]) await client.verifyKey({ key });
  const statusOf = async (path: string) => (await fetch(server.baseUrl + path)).status;
  return { ...server, dataDir, file: join(dataDir, "latchkey.db"), client, remembered, counted, unseen, statusOf };
}

type Served = Awaited<ReturnType<typeof serve>>;

async function expectOutage({ client, remembered, counted, unseen, statusOf, logLines }: Served): Promise<void> {
  expect(await statusOf("/livez")).toBe(200);
  expect(await client.verifyKey({ key: remembered.key }), "from memory").toMatchObject({ valid: true });
  await expect(client.verifyKey({ key: counted.key })).rejects.toMatchObject(unavailable);
  await expect(client.verifyKey({ key: unseen.key })).rejects.toMatchObject(unavailable);
  await expect(client.createKey({ apiId: "api" })).rejects.toMatchObject(unavailable);
  await expect(client.deleteKey({ keyId: unseen.keyId })).rejects.toMatchObject(unavailable);
  expect(logLines.filter((line) => line.includes("the data file is not in its place"))).toHaveLength(1);
}

describe("a data file that is lost while it is served", () => {
  const losses: [string, (served: Served) => void][] = [
    ["removed", ({ file }) => rmSync(file)],
    [
      "replaced by a copy of itself",
      ({ file }) => {
        copyFileSync(file, `${file}-copy`);
        renameSync(`${file}-copy`, file);
      },
    ],
    ["left without its log", ({ file }) => rmSync(`${file}-wal`)],
    ["moved away with its folder", ({ dataDir }) => renameSync(dataDir, `${dataDir}-elsewhere`)],
  ];

  it.each(losses)("because it was %s, is an outage when readiness is asked for", async (_, lose) => {
    const served = await serve();
    expect(await served.statusOf("/readyz")).toBe(200);
    lose(served);
    await vi.waitFor(async () => expect(await served.statusOf("/readyz")).toBe(503), noticed);
    await expectOutage(served);
  });

  it("is noticed within seconds without any request, and forgiven when it is back", async () => {
    const served = await serve();
    const { dataDir, logLines, client, counted, unseen, statusOf } = served;
    renameSync(dataDir, `${dataDir}-elsewhere`);
    await vi.waitFor(() => expect(logLines.join("")).toContain("not in its place"), noticed);
    await expectOutage(served);

    renameSync(`${dataDir}-elsewhere`, dataDir);
    await vi.waitFor(async () => expect(await statusOf("/readyz")).toBe(200), noticed);
    expect(await client.verifyKey({ key: counted.key })).toMatchObject({ valid: true, remaining: 98 });
    expect(await client.verifyKey({ key: unseen.key })).toMatchObject({ valid: true });
  });

  it("is known to every worker, and the next start does not begin with an empty one", async () => {
    const dataDir = tempFolder();
    const environment = { LATCHKEY_DATA_DIR: dataDir, LATCHKEY_ROOT_KEY: testRootKey, LATCHKEY_DRAIN_MS: "0" };
    const latchkey = await startLatchkey({ ...environment, LATCHKEY_WORKERS: "2" });
    const { key } = await rawClient({ ...latchkey, rootKey: testRootKey }).keys.createKey({
      apiId: "api",
      remaining: 5,
    });
    rmSync(join(dataDir, "latchkey.db"));

    // Each request comes over a connection of its own, and goes to either worker.
    const probe = () => fetch(`${latchkey.baseUrl}/readyz`, { headers: { connection: "close" } });
    await vi.waitFor(async () => expect((await probe()).status).toBe(503), noticed);
    for (let i = 0; i < 20; i++) expect((await probe()).status).toBe(503);
    await expect(rawClient(latchkey).keys.verifyKey({ key })).rejects.toMatchObject(unavailable);

    latchkey.kill("SIGTERM");
    expect(await latchkey.exited).toBe(0);
    const { code, stderr } = await runLatchkey(["serve"], { ...environment, PORT: "0", LATCHKEY_INTERNAL_PORT: "0" });
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /the data file .*latchkey\.db is missing, but there was one: put a backup into an empty data folder/,
    );
  });
});
