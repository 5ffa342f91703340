import { describe, expect, it } from "vitest";
import { sha256 } from "../../src/ambient/crypto.ts";
import { postJson } from "../support/post-json.ts";
import { shareServer } from "./shared-server.ts";

/** Some clients send every list, whether it is used or not. Where that is refused: bad-requests. */
describe("a list without items", () => {
  const shared = shareServer();
  async function post(method: string, body: object): Promise<Record<string, unknown>> {
    const { baseUrl, rootKey } = shared();
    const headers = { authorization: `Bearer ${rootKey}` };
    return JSON.parse((await postJson(baseUrl, `/v1/${method}`, body, headers)).text);
  }

  it("means the same as none in creations and verifications, as null does where absent means all", async () => {
    const none = { permissions: [], ratelimits: [] };
    const { keyId, key } = await post("keys.createKey", { apiId: "api", remaining: 2, ...none, ipAllow: null });
    expect(await post("keys.getKey", { keyId })).toMatchObject({ ...none, ipAllow: [] });
    expect(await post("keys.verifyKey", { key, ratelimits: [] })).toMatchObject({ valid: true, remaining: 1 });
    expect(await post("keys.explainKey", { keyId, ratelimits: [] })).toMatchObject({ code: "VALID" });
    const imported = await post("keys.importKeys", {
      apiId: "api",
      keys: [{ digest: sha256("text"), ...none, ipAllow: null }],
    });
    expect(imported).toEqual({ results: [{ keyId: expect.any(String) }] });
    const owner = { ownerId: "alice", ratelimits: [], apiIds: null };
    expect(await post("owners.createOwner", owner)).toMatchObject({ ...owner, apiIds: [] });
    const rootKey = { permissions: ["keys.read"], apiIds: null };
    expect(await post("rootKeys.createRootKey", rootKey)).toMatchObject({ rootKey: expect.any(String) });
  });
});
