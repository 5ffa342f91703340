import { create, fromBinary, type JsonObject, toBinary } from "@bufbuild/protobuf";
import { describe, expect, it, vi } from "vitest";
import { LinkRequestSchema } from "../../gen/latchkey/core/v2/core_pb.js";
import { ListKeysResponseSchema } from "../../gen/latchkey/v1/keys_pb.js";
import { sha256 } from "../../src/ambient/crypto.ts";
import { toWireCalls } from "../../src/core/remote/unsent-calls.ts";
import type { Unavailable } from "../../src/domain/unavailable.ts";
import { sampleOwner } from "../contract/owner-cases.ts";
import { createKey, createOwner } from "../support/manage.ts";
import { testRootKey } from "../support/test-root-key.ts";
import { managementCall, metaOf, realKey } from "./core-cases.ts";
import { startEdgeFront } from "./edge-front.ts";
import { setUpLink } from "./link-fixture.ts";
import { openRawStream } from "./raw-stream.ts";
import { edgeAt, startTestCoordinator } from "./test-coordinator.ts";

/** A front with a core behind a coordinator, on a port, and what it has sent to the coordinator. */
async function startEdge() {
  const coordinator = await startTestCoordinator();
  const { core, changes, baseUrl } = await startEdgeFront([coordinator.address]);
  const sent: string[] = [];
  for (const { link } of core.coordinators.links) {
    const call = link.call.bind(link);
    vi.spyOn(link, "call").mockImplementation((question, options) => {
      sent.push(question.case ?? "");
      return call(question, options);
    });
  }
  const post = async (method: string, body: object, headers = {}): Promise<JsonObject> => {
    const response = await fetch(`${baseUrl}/v1/${method}`, {
      method: "POST",
      headers: { authorization: `Bearer ${testRootKey}`, "content-type": "application/json", ...headers },
      body: JSON.stringify(body),
    });
    return { status: response.status, ...((await response.json()) as JsonObject) };
  };
  /** As `post`, but on a busy machine once more. Then only what was sent for the last time counts. */
  const postSurely = async (...args: Parameters<typeof post>): ReturnType<typeof post> => {
    sent.length = 0;
    const answer = await post(...args);
    return answer.status === 503 ? postSurely(...args) : answer;
  };
  await postSurely("keys.listKeys", { apiId: "none" });
  sent.length = 0;
  return { ...coordinator, post: postSurely, sent, changes };
}

describe("an edge", () => {
  it("has every management method carried out in one round trip", async () => {
    const { post, sent, store } = await startEdge();
    const key = realKey({ apiId: "api", remaining: 5, ownerId: "acme" });
    await createKey(store.management, key);
    await createOwner(store.management, sampleOwner("acme", { remaining: 5 }));
    const { id: keyId } = key;
    const calls: [string, object][] = [
      ["apis.createApi", { apiId: "new" }],
      ["apis.updateApi", { apiId: "new", defaults: { prefix: "live", ratelimit: { limit: 1, duration: 1000 } } }],
      ["apis.updateApi", { apiId: "new", defaults: { ratelimit: { limit: 2 } } }],
      ["apis.getApi", { apiId: "new" }],
      ["apis.listApis", {}],
      ["keys.createKey", { apiId: "new" }],
      ["keys.importKeys", { apiId: "api", keys: [{ digest: sha256("an imported secret") }] }],
      ["keys.getKey", { keyId }],
      ["keys.listKeys", { apiId: "api" }],
      ["keys.updateKey", { keyId, name: "name" }],
      ["keys.updateRemaining", { keyId, op: "set", value: 7 }],
      ["keys.rerollKey", { keyId }],
      ["owners.createOwner", { ownerId: "new" }],
      ["owners.getOwner", { ownerId: "acme" }],
      ["owners.listOwners", {}],
      ["owners.updateOwner", { ownerId: "acme", ratelimits: [{ name: "minute", limit: 5, duration: 60_000 }] }],
      ["owners.updateRemaining", { ownerId: "acme", op: "increment", value: 1 }],
      ["rootKeys.createRootKey", { permissions: ["keys.read"] }],
      ["rootKeys.listRootKeys", {}],
      ["audit.listEvents", {}],
      ["keys.deleteKey", { keyId }],
      ["owners.deleteOwner", { ownerId: "acme", keys: "delete" }],
      ["apis.deleteApi", { apiId: "new", force: true }],
    ];
    const outcomes: unknown[] = [];
    for (const [method, body] of calls) {
      const { status } = await post(method, body, { "idempotency-key": `${method}-${outcomes.length}` });
      outcomes.push([method, status, sent.splice(0)]);
    }
    expect(outcomes).toEqual(calls.map(([method]) => [method, 200, ["management"]]));
  });

  it("is told what was changed with the answer, and of one that is refused too", async () => {
    const { post, changes, store } = await startEdge();
    const key = realKey({ apiId: "api" });
    await createKey(store.management, key);
    const { id: keyId, secretDigest } = key;
    const before = changes.length;
    await post("keys.createKey", { apiId: "api" });
    await post("keys.updateKey", { keyId, enabled: false });
    await post("owners.createOwner", { ownerId: "acme" });
    await post("keys.importKeys", { apiId: "api", keys: [{ digest: sha256("an imported secret") }] });
    const { rootKeyId } = await post("rootKeys.createRootKey", { permissions: ["keys.read"] });
    await post("rootKeys.revokeRootKey", { rootKeyId });
    await post("keys.updateKey", { keyId: "key_none", enabled: false });
    expect(changes.slice(before)).toEqual([
      [],
      [{ kind: "key", keyId, digests: [secretDigest] }],
      [{ kind: "owner", ownerId: "acme", isNew: true }],
      [{ kind: "imports" }],
      [],
      [{ kind: "rootKeys" }],
      [{ kind: "key", keyId: "key_none", digests: undefined }],
    ]);
  });

  it("forgets everything after a call that has changed more than a thousand keys", async () => {
    const { post, changes, store } = await startEdge();
    for (let i = 0; i < 1001; i++) await createKey(store.management, realKey({ apiId: "large" }));
    expect(await post("apis.deleteApi", { apiId: "large", force: true })).toMatchObject({ status: 200 });
    expect(changes.at(-1)).toBe("everything");
  });

  it("explains a key with what is stored", async () => {
    const { post, sent, store } = await startEdge();
    const key = realKey({ apiId: "api", remaining: 0, ownerId: "acme" });
    await createKey(store.management, key);
    await createOwner(store.management, sampleOwner("acme", { remaining: 3 }));
    const explained = await post("keys.explainKey", { keyId: key.id });
    expect(explained).toMatchObject({ status: 200, code: "USAGE_EXCEEDED" });
    expect(sent).toEqual(["holders"]);
    expect(await post("keys.explainKey", { keyId: "key_none" })).toMatchObject({ status: 404 });
  });

  it("gives the caller the coordinator's errors as they are", async () => {
    const { post } = await startEdge();
    const conflict = await post("keys.updateKey", { keyId: "key_none", name: "n", ifVersion: 7 });
    expect(conflict).toMatchObject({ status: 404, error: { code: "NOT_FOUND", message: "there is no such key" } });
    const invalid = await post("keys.createKey", { apiId: "api", remaining: -1 });
    const message = "must be greater than or equal to 0";
    expect(invalid).toEqual({
      status: 400,
      error: {
        code: "BAD_REQUEST",
        message: `remaining: ${message}`,
        docs: "/docs#BAD_REQUEST",
        requestId: expect.any(String),
        violations: [{ path: "remaining", message }],
      },
    });
  });

  it("sends no more bodies than have room, and says that nothing was done", async () => {
    const { address } = await startTestCoordinator();
    const { core } = edgeAt([address]);
    await core.usable;
    const bytes = Buffer.from(`{"apiId":"none"${" ".repeat(65_000)}}`);
    const call = {
      method: "KeysService/ListKeys",
      message: { encoding: "json", bytes },
      rootKey: testRootKey,
      idempotencyKey: undefined,
      requestId: "req_1",
      protocol: "json",
      address: undefined,
      timeLeftMs: undefined,
    } as const;
    const answers = await Promise.allSettled(Array.from({ length: 70 }, () => core.management.carryOut(call, true)));
    const failed = answers.filter((answer) => answer.status === "rejected").map(({ reason }) => reason as Unavailable);
    // On a busy machine others may fail, because the coordinator seems to be silent.
    const refused = failed.filter(({ message }) => message === "too many management calls are under way");
    expect(refused.length).toBe(70 - Math.floor((4 * 1024 * 1024) / bytes.length));
    for (const reason of refused) expect(reason).toMatchObject({ name: "Unavailable", nothingDone: true });
    // And there is room again.
    await vi.waitFor(async () => expect(await core.management.carryOut(call, true)).toHaveProperty("response"));
  });
});

describe("a coordinator", () => {
  it("sends a long answer in pieces, between others", async () => {
    const { store, address } = await startTestCoordinator();
    for (let i = 0; i < 100; i++) await createKey(store.management, realKey({ apiId: "large", meta: metaOf(4096) }));
    const stream = openRawStream(address);
    const body = Buffer.from(JSON.stringify({ apiId: "large", limit: 100 }));
    stream.ask({ id: 1, question: managementCall({ method: "KeysService/ListKeys", body }) });
    await vi.waitFor(() => expect(stream.answers.some(({ answer }) => answer.case === "management")).toBe(true));
    const pieces = stream.answers.map(({ id, answer }) => {
      expect(id).toBe(1);
      if (answer.case === "piece") return answer.value;
      return answer.case === "management" && answer.value.result.case === "message"
        ? answer.value.result.value
        : new Uint8Array();
    });
    expect(pieces.length).toBeGreaterThan(5);
    expect(Math.max(...pieces.map(({ length }) => length))).toBeLessThanOrEqual(65_536);
    // Each in a message of its own: others can go between them.
    for (const { answers } of stream.messages) expect(answers.length).toBeLessThanOrEqual(1);
    expect(fromBinary(ListKeysResponseSchema, Buffer.concat(pieces)).keys.length).toBe(100);
  });

  it("does not begin a call whose time is over", async () => {
    const { address, store } = await startTestCoordinator();
    const change = vi.spyOn(store.management, "change");
    const stream = openRawStream(address);
    await vi.waitFor(() => expect(stream.messages.length).toBeGreaterThan(0));
    const { timeMs = 0 } = stream.messages[0] ?? {};
    // The first says how long a round trip takes, the second was sent half a second before it comes.
    stream.send({ seenTimeMs: timeMs, seenAgeMs: 0 });
    await vi.waitFor(() => expect(stream.heartbeats.at(-1)?.pathMs).toBeGreaterThan(0));
    const before = stream.heartbeats.length;
    await vi.waitFor(() => expect(stream.heartbeats.length).toBeGreaterThan(before + 12));
    const body = Buffer.from(JSON.stringify({ apiId: "late" }));
    const question = managementCall({ method: "ApisService/CreateApi", body, timeLeftMs: 100 });
    stream.send({ seenTimeMs: timeMs, seenAgeMs: 0, ...toWireCalls([{ id: 1, question }]) });
    expect((await stream.answered).case).toBe("notExecuted");
    expect(change).not.toHaveBeenCalled();
  });
});

describe("a message that one side does not know", () => {
  it("fails alone at the coordinator", async () => {
    const { address } = await startTestCoordinator();
    const stream = openRawStream(address);
    // A call with the id 1 and a question in field 100, then one that is known.
    const known = toBinary(
      LinkRequestSchema,
      create(LinkRequestSchema, toWireCalls([{ id: 2, question: managementCall() }])),
    );
    const unknown = Buffer.from([0x0a, 0x06, 0x08, 0x01, 0xa2, 0x06, 0x01, 0x00]);
    stream.sendBytes(Buffer.concat([unknown, known]));
    await vi.waitFor(() => expect(stream.answers.length).toBe(2));
    const kinds = new Map(stream.answers.map(({ id, answer }) => [id, answer.case]));
    expect(kinds).toEqual(
      new Map([
        [1, "unknown"],
        [2, "management"],
      ]),
    );
  });

  it("fails alone at the edge", async () => {
    const { coordinator, link } = await setUpLink();
    const asked = [link.call(managementCall()), link.call(managementCall())];
    await vi.waitFor(() => expect(coordinator.calls.length).toBe(2));
    const [first, second] = coordinator.calls.map(({ id }) => id) as [number, number];
    // An answer without anything that is known, and one that is.
    coordinator.say({ answers: [{ id: first }, { id: second, answer: { case: "management", value: {} } }] });
    expect((await asked[0])?.case).toBeUndefined();
    expect((await asked[1])?.case).toBe("management");
    expect(link.isUp).toBe(true);
  });
});
