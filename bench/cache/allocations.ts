import { getHeapStatistics } from "node:v8";
import { hotMethods } from "../../gen/latchkey/v1/keys_hot.ts";
import { systemClock } from "../../src/ambient/clock.ts";
import { sha256 } from "../../src/ambient/crypto.ts";
import { createLog } from "../../src/ambient/log.ts";
import { createMetrics } from "../../src/ambient/metrics.ts";
import { createSystemRandom } from "../../src/ambient/random.ts";
import type { HotMethod } from "../../src/codec/codec-runtime.ts";
import { formatKey } from "../../src/domain/key-format.ts";
import { Secret } from "../../src/domain/secret.ts";
import { WindowTable } from "../../src/domain/window-table.ts";
import { LocalLimiter } from "../../src/ratelimit/local/local-limiter.ts";
import { createAllEndpoints } from "../../src/rpc/all-endpoints.ts";
import { createRunCall } from "../../src/rpc/call.ts";
import { hotEndpointsOf } from "../../src/rpc/fast-path/hot-grpc.ts";
import { JsonCall, noHeaders } from "../../src/rpc/json-call.ts";
import { createRequestIds } from "../../src/rpc/request-ids.ts";
import { createVerifyKey } from "../../src/usecases/verify-key.ts";
import { caches } from "./caches.ts";
import { storeOf } from "./key-rows.ts";

const calls = 20_000;

/**
 * Bytes that each part of a verification from memory allocates, sockets left out. Without a collection meanwhile: the
 * process must have been given a young generation that holds them all.
 */
export async function allocatedPerVerification(): Promise<Record<string, number>> {
  const metrics = createMetrics();
  const random = createSystemRandom();
  const log = createLog("info", () => {});
  const deps = { clock: systemClock, metrics, random, log };
  const codec = hotMethods[0] as HotMethod;
  const keys = caches.Latchkey(storeOf("nothing else"));
  const limiter = new LocalLimiter(new WindowTable(1), deps);
  const owners = { ownerOf: unused };
  const verifyDeps = { ...deps, keys, owners, limiter, usage: { spend: unused } };
  const verifyKey = createVerifyKey(verifyDeps);
  const endpoints = createAllEndpoints({ front: { ...verifyDeps, readHolders: unused } });
  const [hot] = hotEndpointsOf(endpoints);
  const runCall = createRunCall({ ...deps, checkRootKey: unused });
  const newRequestId = createRequestIds(deps);
  const { key } = formatKey("live", random.bytes(16));
  const body = Buffer.from(JSON.stringify({ key }));
  await keys.findByDigest(sha256(key));
  const digest = sha256(key);
  const secret = new Secret(key);
  if (hot === undefined) throw new Error("the method is not as expected");
  const call = () => runCall(new JsonCall(hot, "req", noHeaders, body, 0, body.length));
  const response = await call();
  return {
    "a request id": allocated(newRequestId),
    "the whole call": allocated(call),
    "of it, reading the request": allocated(() => codec.decodeJson(body, 0, body.length)),
    "of it, the use case": allocated(() => verifyKey({ key: secret, apiId: undefined })),
    "of that, the digest": allocated(() => sha256(key)),
    "of that, the cache": allocated(() => keys.findByDigest(digest)),
    "writing the answer": allocated(() => codec.encodeJson(response)),
  };
}

function allocated(work: () => unknown): number {
  for (let i = 0; i < calls; i++) work();
  globalThis.gc?.();
  const before = getHeapStatistics().used_heap_size;
  for (let i = 0; i < calls; i++) work();
  return Math.round((getHeapStatistics().used_heap_size - before) / calls);
}

function unused(): never {
  throw new Error("a key from memory without a counter needs no other service");
}
