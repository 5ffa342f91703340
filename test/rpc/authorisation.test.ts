import http2 from "node:http2";
import type { AddressInfo } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { hotMethods } from "../../gen/latchkey/v1/services.ts";
import { systemClock } from "../../src/ambient/clock.ts";
import { createLog } from "../../src/ambient/log.ts";
import { createMetrics } from "../../src/ambient/metrics.ts";
import type { NewKey } from "../../src/domain/key.ts";
import { unlimitedRootKey } from "../../src/domain/root-key.ts";
import { createRunCall, type Endpoint } from "../../src/rpc/call.ts";
import { nameOf } from "../../src/rpc/endpoints.ts";
import { createHotGrpc } from "../../src/rpc/fast-path/hot-grpc.ts";
import type { Management } from "../../src/store/management.ts";
import type { CheckRootKey } from "../../src/store/root-access.ts";
import { nextTurn } from "../batching/next-turn.ts";
import { sampleKey } from "../contract/sample-keys.ts";
import { type ApiParts, composePublicApi } from "../support/compose-public-api.ts";
import { coreElsewhere } from "../support/core-elsewhere.ts";
import { createKey } from "../support/manage.ts";
import { TestClock } from "../support/test-clock.ts";
import { checkTestRootKey, testRootKey } from "../support/test-root-key.ts";
import { connectWire } from "./exchange.ts";
import { type CallName, encode, frame, type Protocol, protocols, rootCalls } from "./protocols.ts";

const callsAtOnce = 24;

/** Checks root keys a few turns of the event loop later, as another thread or process does. */
function checkLater(check: CheckRootKey): CheckRootKey {
  return async (presented) => {
    for (let turns = 0; turns < 5; turns++) await nextTurn();
    return check(presented);
  };
}

/** The public API with root keys that are checked later. `created` are the keys that reached the store. */
async function start(
  check: CheckRootKey = checkTestRootKey,
  managesOf: (parts: ApiParts & { management: Management }) => Pick<ApiParts, "manages"> = ({ management }) => ({
    manages: { management },
  }),
) {
  const created: NewKey[] = [];
  const { onePort, store, logLines } = composePublicApi((parts) => {
    const { management } = parts.store;
    const change: Management["change"] = (command, record) => {
      if (command.kind === "createKey") created.push(command.created);
      return management.change(command, record);
    };
    return { checkRootKey: checkLater(check), ...managesOf({ ...parts, management: { ...management, change } }) };
  });
  const port = await onePort.listen(0, "127.0.0.1");
  onTestFinished(() => onePort.close(0));
  return { port, store, created, logLines };
}

function send(port: number, protocol: Protocol, call: CallName, body: Uint8Array, rootKey = testRootKey) {
  const wire = connectWire(port);
  return (protocol.http === 1 ? wire.over1 : wire.over2)({
    method: "POST",
    path: protocol.pathOf(call),
    headers: { "content-type": protocol.contentType, authorization: `Bearer ${rootKey}` },
    body,
  });
}

/** A body that holds no message. */
function garbage({ codec, framed }: Protocol): Uint8Array {
  const bytes = codec === "json" ? Buffer.from('{"x"') : Buffer.of(0xff);
  return framed ? frame(bytes) : bytes;
}

describe.each(protocols)("over $name, while root keys are checked elsewhere", (protocol) => {
  it.each(rootCalls)("an unauthorised caller of %s learns nothing of its bad message", async (call) => {
    const { port, logLines } = await start();
    const outcomes = [];
    for (const rootKey of ["another-root-key", testRootKey]) {
      const answer = await send(port, protocol, call, garbage(protocol), rootKey);
      outcomes.push(protocol.readError(answer));
    }
    expect(outcomes).toMatchObject([
      { code: "UNAUTHORIZED", message: "the root key is not valid" },
      { code: "BAD_REQUEST" },
    ]);
    expect(logLines.map((line) => JSON.parse(line))).toMatchObject([
      { level: "warn", msg: "a root key was refused", address: "127.0.0.1", code: "UNAUTHORIZED", unlogged: 0 },
    ]);
    expect(logLines.join()).not.toContain("another-root-key");
  });

  it("every body is whole when it is read after the check", async () => {
    const { port, created } = await start();
    const names = Array.from({ length: callsAtOnce }, (_, i) => `name ${i}`);
    const meta = (name: string) => ({ padding: name.repeat(1000) });
    const create = async (name: string) => {
      const body = encode(protocol, "createKey", { apiId: "api", name, meta: meta(name) });
      expect(protocol.readError(await send(port, protocol, "createKey", body))).toBeUndefined();
    };
    await Promise.all(names.map(create));
    const byName = new Map(created.map((key) => [key.name, key.meta]));
    expect([...byName.keys()].sort()).toEqual([...names].sort());
    for (const name of names) expect(byName.get(name)).toEqual(meta(name));
  });

  it("a root key that is retired after a front has checked it is refused by the core, and nothing is changed", async () => {
    let isRetired = false;
    const check = () => {
      const isValid = !isRetired;
      isRetired = true;
      return isValid ? unlimitedRootKey("root_test") : undefined;
    };
    const { port, store, created } = await start(check, (parts) => coreElsewhere({ ...parts, checkRootKey: check }));
    const key = sampleKey(new TestClock());
    await createKey(store.management, key);
    const bodies = { createKey: { apiId: "api" }, deleteKey: { keyId: key.id } };
    for (const call of ["createKey", "deleteKey"] as const) {
      isRetired = false;
      const answer = await send(port, protocol, call, encode(protocol, call, bodies[call]));
      expect(protocol.readError(answer)).toMatchObject({ code: "UNAUTHORIZED", message: "the root key is not valid" });
    }
    expect(created).toEqual([]);
    expect(await store.keys.findByDigest(key.secretDigest)).toBeDefined();
  });
});

describe("a hot method that needs a root key", () => {
  it("over gRPC tells an unauthorised caller nothing of its bad message, and reads a good one after the check", async () => {
    const grpc = protocols.find(({ name }) => name === "grpc") as Protocol;
    const read: unknown[] = [];
    const endpoints = hotMethods.map(
      ({ method }): Endpoint => ({
        method,
        name: nameOf(method),
        permission: "keys.verify",
        isPublic: false,
        isManagement: false,
        isRead: false,
        isIdempotent: false,
        handle(request) {
          read.push((request as unknown as { key: string }).key);
          return { valid: true };
        },
      }),
    );
    const checkRootKey = checkLater(checkTestRootKey);
    const log = createLog("warn", () => {});
    const runCall = createRunCall({ clock: systemClock, log, metrics: createMetrics(), checkRootKey });
    const take = createHotGrpc({ endpoints, runCall, newRequestId: () => "req_0000000000000000000000" });
    const server = http2.createServer().on("stream", (stream, headers, flags) => void take(stream, headers, flags));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;

    const codes = [];
    for (const [rootKey, body] of [
      ["another-root-key", garbage(grpc)],
      [testRootKey, garbage(grpc)],
      [testRootKey, encode(grpc, "verifyKey", { key: "a key" })],
    ] as const) {
      codes.push(grpc.readError(await send(port, grpc, "verifyKey", body, rootKey))?.code);
    }
    expect(codes).toEqual(["UNAUTHORIZED", "BAD_REQUEST", undefined]);
    expect(read).toEqual(["a key"]);
  });
});
