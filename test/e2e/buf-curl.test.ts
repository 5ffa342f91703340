import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { startTestServer } from "../support/in-process-server.ts";
import { root } from "../support/repository.ts";

const exec = promisify(execFile);

it.each(["grpc", "grpcweb", "connect"])("buf curl creates, verifies and deletes a key over %s", async (protocol) => {
  const { baseUrl, rootKey } = await startTestServer();
  const call = async (method: string, request: object) => {
    const url = `${baseUrl}/latchkey.v1.KeysService/${method}`;
    const headers = ["--header", `Authorization: Bearer ${rootKey}`];
    const options = ["curl", "--protocol", protocol, "--http2-prior-knowledge", ...headers];
    // It knows the schema from the server alone.
    const { stdout } = await exec(join(root, "node_modules/.bin/buf"), [
      ...options,
      "-d",
      JSON.stringify(request),
      url,
    ]);
    return JSON.parse(stdout);
  };
  const { key, keyId } = await call("CreateKey", { apiId: "api", remaining: 2 });
  expect(await call("VerifyKey", { key })).toMatchObject({ valid: true, remaining: 1, keyId });
  expect(await call("DeleteKey", { keyId })).toEqual({});
  expect(await call("VerifyKey", { key })).toMatchObject({ code: "NOT_FOUND" });
});
