import { type DescMethodUnary, fromBinary, getOption, type JsonValue, toJson } from "@bufbuild/protobuf";
import { beforeAll, describe, expect, it } from "vitest";
import { permission } from "../../gen/latchkey/v1/options_pb.js";
import { routes, services } from "../../gen/latchkey/v1/services.ts";
import { systemClock } from "../../src/ambient/clock.ts";
import { sha256 } from "../../src/ambient/crypto.ts";
import { createSystemRandom } from "../../src/ambient/random.ts";
import { formatKey } from "../../src/domain/key-format.ts";
import type { RootKeyVerdict } from "../../src/domain/root-key.ts";
import type { Secret } from "../../src/domain/secret.ts";
import { WaitingRoom } from "../../src/domain/waiting-room.ts";
import { explainPermission } from "../../src/rpc/all-endpoints.ts";
import type { PublicApiDeps } from "../../src/server/public-api.ts";
import { CoalescingUsageLedger } from "../../src/store/coalescing-usage-ledger.ts";
import { createReadHolders } from "../../src/usecases/read-holders.ts";
import { sampleOwner } from "../contract/owner-cases.ts";
import { sampleKey } from "../contract/sample-keys.ts";
import { type ApiParts, type ComposedApi, composePublicApi } from "../support/compose-public-api.ts";
import { coreElsewhere } from "../support/core-elsewhere.ts";
import { nextLoopbackAddress } from "../support/loopback-address.ts";
import { createKey, createOwner, testEvent } from "../support/manage.ts";
import { TestClock } from "../support/test-clock.ts";
import { connectWire, type HttpAnswer } from "./exchange.ts";
import { callOf, encode, type Protocol, protocols } from "./protocols.ts";

/*
 * Every method × every permission × a foreign API, over every protocol. The methods are those of the generated descriptors, so
 * that one that is added without a sample fails here.
 */

/** What a request is about. */
interface Subject {
  readonly apiId: string;
  readonly keyId: string;
  readonly key: string;
  readonly ownerId: string;
  readonly rootKeyId: string;
}

/** A good request of each method, by its path in JSON. */
const samples: Readonly<Record<string, (subject: Subject) => JsonValue>> = {
  "apis.createApi": ({ keyId }) => ({ apiId: `API of ${keyId}` }),
  "apis.getApi": ({ apiId }) => ({ apiId }),
  "apis.listApis": () => ({ limit: 1 }),
  "apis.updateApi": ({ apiId }) => ({ apiId, name: "name" }),
  "apis.deleteApi": ({ apiId }) => ({ apiId, force: true }),
  "keys.createKey": ({ apiId }) => ({ apiId }),
  "keys.verifyKey": ({ key }) => ({ key }),
  "keys.getKey": ({ keyId }) => ({ keyId }),
  "keys.explainKey": ({ keyId }) => ({ keyId }),
  "keys.updateKey": ({ keyId }) => ({ keyId, name: "name" }),
  "keys.updateRemaining": ({ keyId }) => ({ keyId, op: "set", value: 5 }),
  "keys.listKeys": ({ apiId }) => ({ apiId }),
  "keys.rerollKey": ({ keyId }) => ({ keyId }),
  "keys.importKeys": ({ apiId, key }) => ({ apiId, keys: [{ digest: sha256(`old ${key}`) }] }),
  "keys.deleteKey": ({ keyId }) => ({ keyId }),
  "owners.createOwner": ({ apiId, ownerId }) => ({ ownerId: `new ${ownerId}`, apiIds: [apiId] }),
  "owners.getOwner": ({ ownerId }) => ({ ownerId }),
  "owners.listOwners": () => ({ limit: 1 }),
  "owners.updateOwner": ({ ownerId }) => ({ ownerId, enabled: true }),
  "owners.updateRemaining": ({ ownerId }) => ({ ownerId, op: "set", value: 5 }),
  "owners.deleteOwner": ({ ownerId }) => ({ ownerId }),
  "rootKeys.createRootKey": () => ({
    permissions: ["rootKeys.update"],
    allApis: true,
    expires: systemClock.nowMs() + 30_000,
  }),
  "rootKeys.listRootKeys": () => ({ limit: 1 }),
  "rootKeys.updateRootKey": ({ rootKeyId }) => ({ rootKeyId, name: "name" }),
  "rootKeys.revokeRootKey": ({ rootKeyId }) => ({ rootKeyId }),
  "ratelimits.limit": ({ apiId, keyId }) => {
    return { namespace: "matrix", identifier: keyId, apiId, limit: 5, duration: 60_000 };
  },
  "audit.listEvents": ({ keyId }) => ({ targetId: keyId }),
  "usage.getSpending": ({ keyId }) => ({ keyIds: [keyId], start: 3_600_000, end: 7_200_000 }),
};

const methods = services.flatMap((service) => service.methods as DescMethodUnary[]);
const nameOf = (method: DescMethodUnary) =>
  routes.find((route) => route.method === method && route.verb === "POST")?.path.replace("/v1/", "") ?? "";
const permissions = [...new Set(methods.map((method) => getOption(method, permission)))];

const random = createSystemRandom();
let api: ComposedApi;
let port: number;
/** Of a front without a core: it forwards management calls. */
let edgePort: number;

beforeAll(async () => {
  // Each root key says by itself what it may do.
  const checkRootKey = (presented: Secret) =>
    JSON.parse(Buffer.from(presented.reveal(), "base64url").toString()) as RootKeyVerdict;
  const compose = (override: (parts: ApiParts) => Partial<PublicApiDeps> = () => ({})) =>
    composePublicApi((parts) => ({
      checkRootKey,
      readHolders: createReadHolders({
        ...parts,
        checkRootKey,
        management: (api ?? parts).store.management,
        permission: explainPermission,
      }),
      verifyAuth: "required",
      ...override(parts),
    }));
  api = compose();
  port = await api.onePort.listen(0, "127.0.0.1");
  const { keys, management, usageLanes } = api.store;
  const edge = compose((parts) => ({
    ...coreElsewhere({ ...parts, checkRootKey, management }),
    keys,
    usage: new CoalescingUsageLedger(usageLanes, { ...parts, waitingRoom: new WaitingRoom(10_000) }),
  }));
  edgePort = await edge.onePort.listen(0, "127.0.0.1");
  return async () => {
    await Promise.all([api.onePort.close(0), edge.onePort.close(0)]);
  };
});

function rootKeyFor(allowed: Partial<RootKeyVerdict>): string {
  const verdict = { rootKeyId: "root_1", permissions: ["*"], ...allowed };
  return Buffer.from(JSON.stringify(verdict)).toString("base64url");
}

function unknown(apiId = "unknown"): Subject {
  const name = random.bytes(6).join("");
  const { key } = formatKey(undefined, random.bytes(24));
  return { apiId, keyId: `key_${name}`, key, ownerId: `owner ${name}`, rootKeyId: `root_${name}` };
}

/** A new key of this API, an owner of keys of this API, and a new root key. */
async function newKey(apiId: string): Promise<Subject> {
  const subject = unknown(apiId);
  const properties = { id: subject.keyId, apiId, secretDigest: sha256(subject.key), remaining: 5 };
  await createKey(api.store.management, sampleKey(new TestClock(systemClock.nowMs()), properties));
  const createdAtMs = systemClock.nowMs();
  const created = {
    id: subject.rootKeyId,
    digest: sha256(subject.rootKeyId),
    start: "lk_root_abcd",
    name: undefined,
    permissions: ["rootKeys.update"],
    apiIds: undefined,
    expiresAtMs: createdAtMs + 30_000,
    createdAtMs,
  };
  await api.store.management.change({ kind: "createRootKey", created, event: testEvent() });
  await createOwner(api.store.management, sampleOwner(subject.ownerId, { apiIds: [apiId], remaining: 5 }));
  return subject;
}

/** From another address each time: this is about permissions, not about the limit on wrong root keys. */
const connectNext = (to: number) => connectWire(to, nextLoopbackAddress());

/** The answer as text, without the request's id. `code` is undefined for a success. */
interface Told {
  readonly code: string | undefined;
  readonly text: string;
}

type Send = (method: DescMethodUnary, body: JsonValue, rootKey: string, headers?: object) => Promise<Told>;

/** Sends a message over this protocol, or, for a text, a body that is no message. */
function over(protocol: Protocol, isForwarded: boolean): Send {
  return async (method, body, rootKey, headers) => {
    const call = callOf(method);
    const wire = connectNext(isForwarded ? edgePort : port);
    const send = protocol.http === 1 ? wire.over1 : wire.over2;
    const answer = await send({
      method: "POST",
      path: protocol.pathOf(call),
      headers: { "content-type": protocol.contentType, authorization: `Bearer ${rootKey}`, ...headers },
      body: typeof body === "string" ? Buffer.from(body) : encode(protocol, call, body),
    });
    const refusal = protocol.readError(answer);
    const text = refusal === undefined ? readMessage(protocol, method, answer) : refusal.told;
    return { code: refusal?.code, text: `${answer.status} ${withoutId(text, answer)}` };
  };
}

function readMessage({ codec, framed }: Protocol, { output }: DescMethodUnary, { body }: HttpAnswer): string {
  const message = framed ? body.subarray(5, 5 + body.readUInt32BE(1)) : body;
  return codec === "json" ? message.toString() : JSON.stringify(toJson(output, fromBinary(output, message)));
}

/** Connect's errors hold the request's id in base64 too. */
function withoutId(text: string, answer: HttpAnswer): string {
  const id = answer.headers.get("x-request-id") as string;
  const withoutEncoded = text.replaceAll(/"value":"([\w-]+)"/g, (_, encoded: string) =>
    JSON.stringify({ value: Buffer.from(encoded, "base64").toString() }),
  );
  return withoutEncoded.replaceAll(id, "<id>");
}

const matrix = [
  ["json over HTTP/1.1", ""],
  ["connect+proto", ""],
  ["grpc", ""],
  ["grpc-web", ""],
  ["json over HTTP/1.1", " to an edge"],
  ["connect+json", " to an edge"],
  ["grpc", " to an edge"],
].map(([name, to]) => {
  const protocol = protocols.find((one) => one.name === name) as Protocol;
  return [`${name}${to}`, over(protocol, to !== "")] as const;
});

describe.each(matrix)("over %s", (_, send) => {
  it("every method has a sample", () => {
    expect(methods.map(nameOf).sort()).toEqual(Object.keys(samples).sort());
  });

  describe.each(methods.map((method) => [nameOf(method), method] as const))("%s", (name, method) => {
    const needed = getOption(method, permission);
    const bodyFor = (subject: Subject) => samples[name]?.(subject) as JsonValue;

    it("is forbidden to a root key with all permissions but its own, whatever the message, and names it", async () => {
      const rootKey = rootKeyFor({ permissions: permissions.filter((other) => other !== needed) });
      const subject = await newKey("mine");
      const answers = [bodyFor(subject), bodyFor(unknown()), '{"x"'].map((body) => send(method, body, rootKey));
      const [first, ...others] = await Promise.all(answers);
      expect(first).toMatchObject({ code: "FORBIDDEN", text: expect.stringContaining(`the permission ${needed}`) });
      for (const other of others) expect(other).toEqual(first);
    });

    it("is allowed by its own permission alone, and by a pattern that covers it", async () => {
      for (const granted of [needed, `${needed.split(".")[0]}.*`, "*"]) {
        const answer = await send(method, bodyFor(await newKey("mine")), rootKeyFor({ permissions: [granted] }));
        expect([granted, answer.code]).toEqual([granted, undefined]);
      }
    });

    it("answers alike about what belongs to an API of another root key and about what does not exist", async () => {
      const rootKey = rootKeyFor({ apiIds: ["mine"] });
      const foreign = await newKey("theirs");
      const answers = [foreign, unknown()].map(async (subject) => {
        const { text, code } = await send(method, bodyFor(subject), rootKey);
        // Spending is answered by the ids that were asked for.
        return { code, text: text.replace(`"keyId":"${subject.keyId}"`, "") };
      });
      const [ofForeign, ofUnknown] = await Promise.all(answers);
      expect(ofForeign).toEqual(ofUnknown);
      expect(JSON.stringify(ofForeign)).not.toContain("theirs");
      // And nothing was done: it is as it was for its own root key.
      const read = await api.store.management.read({ kind: "key", id: foreign.keyId });
      expect(read).toMatchObject({ version: 1, counter: { remaining: 5 } });
      const owner = await api.store.management.read({ kind: "owner", id: foreign.ownerId });
      expect(owner).toMatchObject({ version: 1, counter: { remaining: 5 } });
    });

    const isOfAnApi = !name.startsWith("rootKeys.") && name !== "apis.createApi";
    it(`is ${isOfAnApi ? "served" : "forbidden"} to a root key that is limited to the API in question`, async () => {
      const answer = await send(method, bodyFor(await newKey("mine")), rootKeyFor({ apiIds: ["other", "mine"] }));
      expect(answer.code).toBe(isOfAnApi ? undefined : "FORBIDDEN");
    });

    it("is refused to a root key that has expired, and served until then", async () => {
      const subject = await newKey("mine");
      const nowMs = systemClock.nowMs();
      const over = await send(method, bodyFor(subject), rootKeyFor({ expiresAtMs: nowMs }));
      expect(over.code).toBe("UNAUTHORIZED");
      const later = await send(method, bodyFor(subject), rootKeyFor({ expiresAtMs: nowMs + 60_000 }));
      expect(later.code).toBeUndefined();
    });
  });

  const methodOf = (path: string) => methods.find((one) => nameOf(one) === path) as DescMethodUnary;

  it("an owner that concerns an API of another root key too, or all APIs, is not there, and cannot be made so", async () => {
    const limited = rootKeyFor({ apiIds: ["mine", "other"] });
    for (const apiIds of [["mine", "theirs"], undefined]) {
      const { ownerId } = unknown();
      await createOwner(api.store.management, sampleOwner(ownerId, { apiIds }));
      const body = { ownerId };
      const ofForeign = await send(methodOf("owners.getOwner"), body, limited);
      expect(ofForeign).toMatchObject({ code: "NOT_FOUND", text: expect.stringContaining("there is no such owner") });
      expect(await send(methodOf("owners.getOwner"), { ownerId: "unknown" }, limited)).toEqual(ofForeign);
      const refused = { code: "FORBIDDEN", text: expect.stringContaining("apiIds must name them") };
      const given = apiIds && { apiIds };
      expect(await send(methodOf("owners.createOwner"), { ownerId: `${ownerId} 2`, ...given }, limited)).toMatchObject(
        refused,
      );
      // Whether the owner is there or not.
      for (const ownerId of [body.ownerId, "unknown", (await newKey("mine")).ownerId]) {
        const change = apiIds ?? ["mine", "theirs"];
        const answer = await send(methodOf("owners.updateOwner"), { ownerId, apiIds: change }, limited);
        expect(answer).toMatchObject(refused);
      }
    }
    const { ownerId } = await newKey("mine");
    const within = await send(methodOf("owners.updateOwner"), { ownerId, apiIds: ["other", "mine"] }, limited);
    expect(within.code).toBeUndefined();
  });

  it("an import tells of a digest that exists in a foreign API what it tells of one that exists in its own", async () => {
    const method = methodOf("keys.importKeys");
    const [mine, foreign] = [await newKey("mine"), await newKey("theirs")];
    const limited = rootKeyFor({ apiIds: ["mine"] });
    const answers = [mine, foreign].map(({ key }) =>
      send(method, { apiId: "mine", keys: [{ digest: sha256(key) }] }, limited),
    );
    const [ofMine, ofForeign] = await Promise.all(answers);
    expect(ofMine?.text).toContain("there is a key with this digest");
    expect(ofForeign).toEqual(ofMine);
    const read = await api.store.management.read({ kind: "key", id: foreign.keyId });
    expect(read).toMatchObject({ apiId: "theirs", version: 1 });
  });

  it("an Idempotency-Key of a foreign API's root key tells nothing", async () => {
    const create = methodOf("keys.createKey");
    const body = { apiId: "theirs" };
    const headers = { "idempotency-key": `order of ${random.bytes(4).join("")}`.replaceAll(" ", "-") };
    expect((await send(create, body, rootKeyFor({}), headers)).code).toBeUndefined();
    const limited = rootKeyFor({ apiIds: ["mine"] });
    const repeated = await send(create, body, limited, headers);
    expect(repeated).toEqual(await send(create, { apiId: "unknown" }, limited, headers));
    expect(repeated.code).toBe("NOT_FOUND");
  });
});
