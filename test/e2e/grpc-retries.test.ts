import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import * as grpc from "@grpc/grpc-js";
import { describe, expect, it, onTestFinished } from "vitest";
import { VerifyKeyRequestSchema, VerifyKeyResponseSchema } from "../../gen/latchkey/v1/keys_pb.js";
import { latchkeyOf } from "../support/clients.ts";
import { FaultyProxy } from "../support/faulty-proxy.ts";
import { startLatchkey } from "../support/latchkey-process.ts";
import { freePort } from "../support/local-server.ts";
import { readMetric } from "../support/read-metric.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { createTestDatabase, hasPostgres } from "../support/test-database.ts";
import { testRootKey } from "../support/test-root-key.ts";

const attempts = 3;
const retryPolicy = {
  maxAttempts: attempts,
  initialBackoff: "0.01s",
  maxBackoff: "0.01s",
  backoffMultiplier: 1,
  retryableStatusCodes: ["UNAVAILABLE"],
};

/** A client of gRPC that is told to repeat every call that was UNAVAILABLE. */
function patientClient(port: number) {
  const config = JSON.stringify({ methodConfig: [{ name: [{}], retryPolicy }] });
  const options = { "grpc.service_config": config, "grpc.enable_retries": 1 };
  const client = new grpc.Client(`127.0.0.1:${port}`, grpc.credentials.createInsecure(), options);
  onTestFinished(() => client.close());
  return (key: string) =>
    new Promise((resolve, reject) => {
      client.makeUnaryRequest(
        "/latchkey.v1.KeysService/VerifyKey",
        (sent: string) => Buffer.from(toBinary(VerifyKeyRequestSchema, create(VerifyKeyRequestSchema, { key: sent }))),
        (bytes: Buffer) => fromBinary(VerifyKeyResponseSchema, bytes),
        key,
        (error, answer) => (error ? reject(error) : resolve(answer)),
      );
    });
}

describe.runIf(hasPostgres)("a client of gRPC that repeats what was UNAVAILABLE", () => {
  it("repeats a call after which nothing was taken, and waits as long as it is told", async () => {
    const [port, internalPort, nowhere] = await Promise.all([freePort(), freePort(), freePort()]);
    startLatchkey({
      LATCHKEY_DATA_DIR: tempFolder(),
      LATCHKEY_ROOT_KEY: testRootKey,
      DATABASE_URL: `postgres://127.0.0.1:${nowhere}/nowhere`,
      PORT: String(port),
      LATCHKEY_INTERNAL_PORT: String(internalPort),
    }).catch(() => {});
    while (!(await fetch(`http://127.0.0.1:${port}/livez`).catch(() => undefined))) await undefined;
    const begunMs = performance.now();
    const key = "key_7Jd8XWkYhAqT3vRz0LmNpBsC5eFgHiUo";
    await expect(patientClient(port)(key)).rejects.toMatchObject({ code: grpc.status.UNAVAILABLE });
    expect(await readMetric(internalPort, "latchkey_call_seconds_count")).toBe(attempts);
    // Twice the delay that the service asks for, in place of the client's own of 10 ms.
    expect(performance.now() - begunMs).toBeGreaterThanOrEqual(2000);
  });

  it("does not repeat one that may have been charged, and is charged once at most", async () => {
    const database = new URL(await createTestDatabase());
    const proxy = await FaultyProxy.start(Number(database.port));
    database.port = String(proxy.port);
    const { baseUrl, internalUrl } = await startLatchkey({
      LATCHKEY_DATA_DIR: tempFolder(),
      LATCHKEY_ROOT_KEY: testRootKey,
      DATABASE_URL: database.href,
    });
    const { keys } = latchkeyOf("sdk", baseUrl, testRootKey);
    const { key } = await keys.createKey({ apiId: "api", remaining: 100 });
    const verify = patientClient(Number(new URL(baseUrl).port));
    expect(await verify(key)).toMatchObject({ valid: true, remaining: 99 });
    const called = () => readMetric(Number(new URL(internalUrl).port), "latchkey_call_seconds_count");
    const before = await called();
    // The charge reaches the database, and its answer does not come back.
    proxy.onReply = () => "cut";
    const failed = verify(key);
    await expect(failed).rejects.toMatchObject({ code: grpc.status.UNAVAILABLE });
    expect((await called()) - before).toBe(1);
    proxy.onReply = () => "pass";
    let remaining: number | undefined;
    // Until the database is used again.
    while (remaining === undefined) remaining = (await keys.verifyKey({ key }).catch(() => undefined))?.remaining;
    // One use of its own, and one at most of the call that failed.
    expect([97, 98]).toContain(remaining);
  });
});
