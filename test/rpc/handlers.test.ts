import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { CreateApiRequestSchema } from "../../gen/latchkey/v1/apis_pb.js";
import { GetKeyRequestSchema } from "../../gen/latchkey/v1/keys_pb.js";
import { sha256 } from "../../src/ambient/crypto.ts";
import { createSystemRandom } from "../../src/ambient/random.ts";
import { ApiError } from "../../src/rpc/api-error.ts";
import { apisHandlers } from "../../src/rpc/apis-service.ts";
import type { HandlerContext } from "../../src/rpc/call.ts";
import { keysHandlers } from "../../src/rpc/keys-service.ts";
import type { List } from "../../src/rpc/page-cursor.ts";
import { page } from "../../src/rpc/resource-methods.ts";
import { sampleOwner } from "../contract/owner-cases.ts";
import { sampleKey } from "../contract/sample-keys.ts";
import { createApi, createKey, createOwner, testEvent } from "../support/manage.ts";
import { createMemoryStore } from "../support/memory-store.ts";
import { TestClock } from "../support/test-clock.ts";

/* What handlers do themselves, over a store in memory. */

function setUp() {
  const clock = new TestClock("2026-11-15T12:00:00Z");
  const deps = { clock, random: createSystemRandom() };
  const { management } = createMemoryStore(clock);
  const context = { call: { headers: {} }, caller: undefined, management, note: () => {} };
  return { clock, deps, management, context: context as unknown as HandlerContext };
}

async function addRootKey({ management, clock }: ReturnType<typeof setUp>, made: number): Promise<void> {
  const id = `root_${String(made).padStart(2, "0")}`;
  const rights = { permissions: ["*"], apiIds: undefined, expiresAtMs: undefined };
  const created = { id, name: undefined, ...rights, digest: id, start: "lk_root", createdAtMs: clock.nowMs() };
  await management.change({ kind: "createRootKey", created, event: testEvent() });
}

interface ListCase {
  readonly list: List;
  readonly filters?: object;
  /** The ids of the first two that were added, where they are known. */
  readonly oldest?: readonly string[];
  readonly add: (server: ReturnType<typeof setUp>, made: number) => Promise<unknown>;
}

const addKey: ListCase["add"] = ({ management, clock }) => createKey(management, sampleKey(clock, { apiId: "api" }));

describe.each<ListCase>([
  { list: "keys", filters: { apiId: "api" }, add: addKey },
  { list: "events", add: addKey },
  {
    list: "owners",
    oldest: ["owner 1", "owner 0"],
    add: ({ management }, made) => createOwner(management, sampleOwner(`owner ${made}`), { atMs: made + 1 }),
  },
  {
    list: "apis",
    oldest: ["api 1", "api 0"],
    add: ({ management }, made) => createApi(management, `api ${made}`, { atMs: made + 1 }),
  },
  { list: "rootKeys", oldest: ["root_01", "root_00"], add: addRootKey },
])("a page of $list", ({ list, filters, oldest, add }) => {
  it("has 50 of them where no limit is given, newest first, and the next one begins behind it", async () => {
    const server = setUp();
    for (let made = 0; made < 52; made++) await add(server, made);
    const all = (await server.management.read({ kind: list, limit: 100 })).items;
    const idsOf = (items: readonly { readonly id: string }[]) => items.map(({ id }) => id);
    const read = (asked: { limit?: number; cursor?: string | undefined }) => page(list, asked, server.context, filters);
    const first = await read({});
    expect(idsOf(first.items)).toEqual(idsOf(all.slice(0, 50)));
    const second = await read({ cursor: first.cursor });
    expect(idsOf(second.items)).toEqual(idsOf(all.slice(50)));
    expect(second.items).toHaveLength(2);
    if (oldest !== undefined) expect(idsOf(second.items)).toEqual(oldest);
    expect(second.cursor).toBeUndefined();
    expect((await read({ limit: 7 })).items).toEqual(first.items.slice(0, 7));
  });

  it("is empty where there is nothing", async () => {
    const { context } = setUp();
    expect(await page(list, {}, context, filters)).toEqual({ items: [] });
  });
});

it.each([
  { list: "keys", filters: { apiId: "unknown" } },
  { list: "events", filters: { targetId: "unknown" } },
] as const)("a page of $list that match no filter is empty", async ({ list, filters }) => {
  const server = setUp();
  await addKey(server, 0);
  expect(await page(list, {}, server.context, filters)).toEqual({ items: [] });
});

it("getKey finds a key by its id or its secret, and nothing else", async () => {
  const { clock, deps, management, context } = setUp();
  const secret = "the secret of a key";
  const key = sampleKey(clock, { secretDigest: sha256(secret) });
  await createKey(management, key);
  const { getKey } = keysHandlers(deps);
  const idBy = async (by: { keyId: string } | { key: string }) =>
    (await getKey(create(GetKeyRequestSchema, by), context)).keyId;
  expect(await idBy({ keyId: key.id })).toBe(key.id);
  expect(await idBy({ key: secret })).toBe(key.id);
  const nothing = new ApiError("NOT_FOUND", "there is no such key");
  await expect(idBy({ keyId: secret })).rejects.toThrow(nothing);
  await expect(idBy({ key: key.id })).rejects.toThrow(nothing);
  await expect(idBy({ key: key.secretDigest })).rejects.toThrow(nothing);
});

it("createApi makes an id where none is given, another one each time", async () => {
  const { deps, management, context } = setUp();
  const make = async () => (await apisHandlers(deps).createApi(create(CreateApiRequestSchema), context)).apiId;
  const ids = [await make(), await make()];
  for (const id of ids) {
    expect(id).toMatch(/^api_[0-9A-Za-z]{22}$/);
    expect(await management.read({ kind: "api", id: id as string })).toMatchObject({ id, version: 1 });
  }
  expect(new Set(ids).size).toBe(2);
});
