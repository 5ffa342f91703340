import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import * as grpc from "@grpc/grpc-js";
import { describe, expect, it, onTestFinished } from "vitest";
import { VerifyKeyRequestSchema, VerifyKeyResponseSchema } from "../../gen/latchkey/v1/keys_pb.js";
import { hasPostgres } from "../support/test-database.ts";
import {
  attemptsMax,
  serviceConfig,
  startForgetfulProxy,
  startWithLostReplies,
  startWithoutDatabase,
} from "./unavailable-services.ts";

/** A client of gRPC that is told to repeat every call that was UNAVAILABLE. */
function patientClient(port: number) {
  const options = { "grpc.service_config": serviceConfig, "grpc.enable_retries": 1 };
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
    const { port, calls } = await startWithoutDatabase();
    const begunMs = performance.now();
    const key = "key_7Jd8XWkYhAqT3vRz0LmNpBsC5eFgHiUo";
    await expect(patientClient(port)(key)).rejects.toMatchObject({ code: grpc.status.UNAVAILABLE });
    expect(await calls()).toBe(attemptsMax);
    // Twice the delay that the service asks for, in place of the client's own of 10 ms.
    expect(performance.now() - begunMs).toBeGreaterThanOrEqual(2000);
  });

  it("does not repeat one that may have been charged, and is charged once at most", async () => {
    const service = await startWithLostReplies();
    const before = await service.calls();
    service.isLosing = true;
    await expect(patientClient(service.port)(service.key)).rejects.toMatchObject({ code: grpc.status.UNAVAILABLE });
    expect((await service.calls()) - before).toBe(1);
    service.isLosing = false;
    // One use of its own, and one at most of the call that failed.
    expect([97, 98]).toContain(await service.remainingAfterUse());
  });

  it("control: would be repeated and charged twice if its answer did not forbid it", async () => {
    const service = await startWithLostReplies();
    let attempts = 0;
    const port = await startForgetfulProxy(service.port, () => {
      attempts++;
      // The database is back when the client repeats its call.
      if (attempts === 2) service.isLosing = false;
    });
    service.isLosing = true;
    expect(await patientClient(port)(service.key)).toMatchObject({ valid: true });
    expect(attempts).toBe(2);
    expect(await service.remainingAfterUse()).toBe(96);
  });
});
