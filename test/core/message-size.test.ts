import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { describe, expect, it, vi } from "vitest";
import { LinkRequestSchema } from "../../gen/latchkey/core/v2/core_pb.js";
import { ListKeysResponseSchema } from "../../gen/latchkey/v1/keys_pb.js";
import type { NewKey } from "../../src/domain/key.ts";
import { metaBytesMax } from "../../src/domain/meta.ts";
import { sized } from "../support/deep.ts";
import { createKey } from "../support/manage.ts";
import { testRootKey } from "../support/test-root-key.ts";
import { managementCall, metaOf, realKey } from "./core-cases.ts";
import { setUpLink } from "./link-fixture.ts";
import { edgeAt, startTestCoordinator } from "./test-coordinator.ts";

const patient = { timeout: 60_000, interval: 5 };
/** What each side refuses: then the stream ends. */
const refusedBytes = 8 * 1024 * 1024;
/** As much as one message may hold, and half as much again. Far more can take so long on a busy machine that the link is lost. */
const made = sized(800, 1000);

const listKeys = {
  method: "KeysService/ListKeys",
  rootKey: testRootKey,
  idempotencyKey: undefined,
  requestId: "req_1",
  protocol: "json",
  address: undefined,
  timeLeftMs: undefined,
};

describe("messages of a link stay small enough", () => {
  it("when thousands of look-ups of one turn find keys with as much metadata as there may be", async () => {
    const { store, address } = await startTestCoordinator();
    const meta = metaOf(metaBytesMax);
    const keys = Array.from({ length: sized(1500, 5000) }, () => realKey({ meta }));
    for (const key of keys) await createKey(store.management, key);
    const { coordinators } = edgeAt([address]).core;
    // Without the deadline of a verification: this is about size. A link that is given up because the machine stood still is
    // there again soon; one that was sent too much would be given up each time.
    const lookUp = async (
      { id, secretDigest }: Pick<NewKey, "id" | "secretDigest">,
      tries = 5,
    ): Promise<number | undefined> => {
      await vi.waitFor(() => expect(coordinators.hasLedger).toBe(true), patient);
      try {
        const answer = await coordinators.callOnce(id, { case: "lookup", value: { digest: secretDigest } });
        return answer.case === "lookup" && answer.value.key?.id === id ? answer.value.key.metaJson.length : undefined;
      } catch (error) {
        if (tries === 1) throw error;
        return lookUp({ id, secretDigest }, tries - 1);
      }
    };
    const found = await Promise.all(keys.map((key) => lookUp(key)));
    expect(new Set(found)).toEqual(new Set([metaBytesMax]));
  });

  it("when a page of keys with as much metadata as there may be is read", async () => {
    const { store, address } = await startTestCoordinator();
    // As large as they get: each of these characters is escaped twice on its way.
    const meta = { text: "\\".repeat((metaBytesMax - 20) / 2) };
    const keys = Array.from({ length: 100 }, () => realKey({ meta, apiId: "api of large keys" }));
    for (const key of keys) await createKey(store.management, key);
    const { core } = edgeAt([address]);
    await vi.waitFor(() => expect(core.coordinators.hasLedger).toBe(true), patient);
    const body = Buffer.from(JSON.stringify({ apiId: "api of large keys", limit: 100 }));
    const call = { ...listKeys, message: { encoding: "json", bytes: body } } as const;
    const answer = await core.management.carryOut(call, true);
    const page = fromBinary(ListKeysResponseSchema, "response" in answer ? answer.response : new Uint8Array());
    expect(page.keys.length).toBe(100);
    expect(page.keys[0]?.meta).toEqual(meta);
  });

  it("when hundreds of keys with as much metadata as there may be are made in one turn", async () => {
    const { coordinator, link } = await setUpLink();
    // A link that is given up because the machine stood still is there again soon; one that was sent too much would be given up
    // each time.
    const send = async (): Promise<void> => {
      await link.call(managementCall({ body: new Uint8Array(metaBytesMax) })).catch(async () => {
        await vi.waitFor(() => expect(link.isUp).toBe(true), patient);
        return send();
      });
    };
    for (let i = 0; i < made; i++) void send().catch(() => {});
    await vi.waitFor(() => expect(coordinator.calls.length).toBeGreaterThanOrEqual(made), patient);
    const sizes = coordinator.requests.map((request) => toBinary(LinkRequestSchema, request).length);
    expect(sizes.length).toBeGreaterThan(1);
    expect(Math.max(...sizes)).toBeLessThan(refusedBytes);
  });
});
