import { describe, expect, it, vi } from "vitest";
import { Secret } from "../../src/domain/secret.ts";
import { clientKinds, latchkeyOf } from "../support/clients.ts";
import { createOverNewConnection } from "../support/create-over-new-connection.ts";
import { sized } from "../support/deep.ts";
import { oneEngine } from "../support/engines.ts";
import { startTestServer } from "../support/in-process-server.ts";
import { rawClient } from "../support/raw-client.ts";
import { createTestDatabase, hasPostgres } from "../support/test-database.ts";
import { testRootKey } from "../support/test-root-key.ts";
import { share } from "./share.ts";

/** Enough requests over new connections to reach every worker. */
const tries = 12;

async function codesOf(baseUrl: string, rootKey: string): Promise<readonly string[]> {
  const codes = await Promise.all(
    Array.from({ length: tries }, () => createOverNewConnection(baseUrl, rootKey, "mine")),
  );
  return [...new Set(codes)];
}

describe.each(oneEngine)("on $name", (engine) => {
  const shared = share(async () => startTestServer({ settings: await engine.settings() }));

  it.each(sized([1], [1, 2]))(
    "a root key lives from its creation to its revocation, with workers: %i",
    async (workers) => {
      const { baseUrl } = await startTestServer({ settings: { ...(await engine.settings()), workers } });
      const { rootKeys, audit } = rawClient({ baseUrl, rootKey: testRootKey });
      const allowed = { permissions: ["keys.create"], apiIds: ["mine"], name: "deploys" };
      const { rootKeyId, rootKey } = await rootKeys.createRootKey(allowed, { idempotencyKey: "first" });
      expect(await rootKeys.createRootKey(allowed, { idempotencyKey: "first" })).toEqual({ rootKeyId, rootKey });
      expect(await codesOf(baseUrl, rootKey)).toEqual(["OK"]);
      const listed = await rootKeys.listRootKeys({});
      expect(listed.rootKeys).toMatchObject([{ rootKeyId, ...allowed, version: 1 }]);
      expect(JSON.stringify(listed)).not.toContain(rootKey);

      // In force when it is answered, unless a worker gets no processor time for 100 ms.
      const untilCodesAre = (...codes: string[]) =>
        vi.waitFor(async () => expect(await codesOf(baseUrl, rootKey)).toEqual(codes));
      const { version } = await rootKeys.updateRootKey({ rootKeyId, permissions: ["keys.read"], ifVersion: 1 });
      expect(version).toBe(2);
      await untilCodesAre("FORBIDDEN");
      await rootKeys.updateRootKey({ rootKeyId, permissions: ["keys.*"], apiIds: ["theirs"] });
      await untilCodesAre("NOT_FOUND");
      await rootKeys.updateRootKey({ rootKeyId, apiIds: null });
      await untilCodesAre("OK");
      await rootKeys.revokeRootKey({ rootKeyId });
      await untilCodesAre("UNAUTHORIZED");
      await expect(rootKeys.revokeRootKey({ rootKeyId })).rejects.toMatchObject({ code: "NOT_FOUND" });
      const { events } = await audit.listEvents({ targetId: rootKeyId });
      expect(events.map(({ method, rootKeyId: by }) => [method.replace("rootKeys.", ""), by])).toEqual([
        ["revokeRootKey", "configured"],
        ["updateRootKey", "configured"],
        ["updateRootKey", "configured"],
        ["updateRootKey", "configured"],
        ["createRootKey", "configured"],
      ]);
    },
  );

  it("a root key is needed for verifications where the service asks for it, and the client sends it", async () => {
    const settings = { ...(await engine.settings()), verifyAuth: "required" } as const;
    const { baseUrl } = await startTestServer({ settings });
    const { keys, rootKeys } = rawClient({ baseUrl, rootKey: testRootKey });
    const { rootKey } = await rootKeys.createRootKey({ permissions: ["keys.verify"] });
    const { key } = await keys.createKey({ apiId: "mine" });
    expect(await rawClient({ baseUrl, rootKey }).keys.verifyKey({ key })).toMatchObject({ code: "VALID" });
    const without = rawClient({ baseUrl }).keys.verifyKey({ key });
    await expect(without).rejects.toMatchObject({ code: "UNAUTHORIZED", status: 401 });
  });

  it("says over every protocol whether a root key is for all APIs, and no empty list ever means them", async () => {
    const { baseUrl } = shared();
    const permissions = ["keys.create"];
    for (const kind of clientKinds) {
      const { rootKeys } = latchkeyOf(kind, baseUrl, testRootKey);
      const isBinary = kind !== "sdk" && kind !== "connect-json";
      const shown = async (rootKeyId: string) => {
        const found = (await rootKeys.listRootKeys({})).rootKeys?.find((one) => one.rootKeyId === rootKeyId);
        return [found?.apiIds, found?.allApis];
      };
      const silent = rootKeys.createRootKey({ permissions });
      if (isBinary) await expect(silent, kind).rejects.toThrow("apiIds: must not be empty");
      else expect(await shown((await silent).rootKeyId), kind).toEqual([[], true]);
      const { rootKeyId } = await rootKeys.createRootKey({ permissions, allApis: true });
      expect(await shown(rootKeyId), kind).toEqual([[], true]);
      expect(await rootKeys.updateRootKey({ rootKeyId, apiIds: ["mine"] })).toMatchObject({ allApis: false });
      expect(await shown(rootKeyId), kind).toEqual([["mine"], false]);
      // A mask is not part of the SDK, which sends JSON.
      const update = (request: object) => rootKeys.updateRootKey({ rootKeyId, ...request });
      const none = isBinary ? { updateMask: "apiIds" } : { apiIds: [], name: "name" };
      if (kind !== "connect-json") await expect(update(none), kind).rejects.toThrow("apiIds: must not be empty");
      await expect(update({ apiIds: ["other"], allApis: true }), kind).rejects.toThrow("apiIds: must be left out");
      expect(await shown(rootKeyId), kind).toEqual([["mine"], false]);
      const all = isBinary ? { updateMask: "apiIds,allApis", allApis: true } : { allApis: true };
      expect(await update(kind === "sdk" ? { apiIds: null } : all)).toMatchObject({ apiIds: [], allApis: true });
      await update({ apiIds: ["mine"] });
      expect(await update({ allApis: true })).toMatchObject({ apiIds: [], allApis: true });
      const { rootKeyId: limited } = await rootKeys.createRootKey({ permissions, apiIds: ["mine"], allApis: false });
      expect(await shown(limited), kind).toEqual([["mine"], false]);
    }
  });

  it("refuses unknown permissions, an empty list of APIs and an expiry in the past", async () => {
    const { baseUrl } = shared();
    const { rootKeys } = rawClient({ baseUrl, rootKey: testRootKey });
    const bad: [Parameters<typeof rootKeys.createRootKey>[0], string][] = [
      [{ permissions: ["keys.read", "keys.reed"] }, "permissions[1]: is not known"],
      [{ permissions: ["*"], apiIds: [] }, "apiIds: must not be empty"],
      [{ permissions: [] }, "permissions"],
      [{ permissions: ["*"], expires: 1_700_000_000_000 }, "expires: must be in the future"],
    ];
    for (const [request, problem] of bad) {
      const refused = rootKeys.createRootKey(request);
      await expect(refused).rejects.toMatchObject({ code: "BAD_REQUEST", message: expect.stringContaining(problem) });
    }
  });
});

describe.runIf(hasPostgres)("a root key that is revoked", () => {
  it("is refused by the replica that was asked, and by another one and edges within two seconds", async () => {
    const settings = { databaseUrl: new Secret(await createTestDatabase()) };
    const coordinator = await startTestServer({ settings: { ...settings, role: "coordinator" } });
    const coordinators = [`127.0.0.1:${coordinator.internalPort}`];
    const edges = await Promise.all([1, 2].map(() => startTestServer({ settings: { role: "edge", coordinators } })));
    const replica = await startTestServer({ settings });
    const fronts = [...edges, replica].map(({ baseUrl }) => baseUrl);
    for (const asked of fronts) {
      const { rootKeys } = rawClient({ baseUrl: asked, rootKey: testRootKey });
      const { rootKeyId, rootKey } = await rootKeys.createRootKey({ permissions: ["keys.create"] });
      for (const front of fronts) expect(await codesOf(front, rootKey)).toEqual(["OK"]);
      await rootKeys.revokeRootKey({ rootKeyId });
      expect(await codesOf(asked, rootKey)).toEqual(["UNAUTHORIZED"]);
      for (const front of fronts) {
        const isRefused = async () => expect(await codesOf(front, rootKey)).toEqual(["UNAUTHORIZED"]);
        await vi.waitFor(isRefused, { timeout: sized(60_000, 2000), interval: 20 });
      }
    }
  });
});
