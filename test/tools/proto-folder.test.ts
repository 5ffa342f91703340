import { execFileSync } from "node:child_process";
import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  FieldOptionsSchema,
  type FileDescriptorProto,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
} from "@bufbuild/protobuf/wkt";
import { loadSync, type ServiceDefinition } from "@grpc/proto-loader";
import { describe, expect, it } from "vitest";
import { liveOnce, loaderOptions } from "../support/dynamic-client.ts";
import { startTestServer } from "../support/in-process-server.ts";
import { root } from "../support/repository.ts";
import { freshClone, ours, protoFolder } from "./written-protos.ts";

const imported = ["buf/validate/validate.proto", "google/api/annotations.proto", "google/api/http.proto"];

describe("the folder of proto files", () => {
  it("holds our public files, what they import, and the licences of both", () => {
    const entries = readdirSync(protoFolder(), { recursive: true, withFileTypes: true });
    const folder = entries.find(({ name }) => name === "latchkey")?.parentPath ?? "";
    const files = entries.filter((each) => each.isFile()).map((each) => join(each.parentPath, each.name));
    expect(files.map((file) => file.slice(folder.length + 1)).sort()).toEqual(
      [...ours, ...imported, "LICENSE", "google/LICENSE"].sort(),
    );
  });

  it("is read by @grpc/proto-loader alone, and a key is created, verified and deleted with it", async () => {
    const server = await startTestServer();
    const load = (folder: string) => loadSync("latchkey/v1/keys.proto", { ...loaderOptions, includeDirs: [folder] });
    const life = await liveOnce(load(protoFolder()), server);
    expect(life.verified).toMatchObject({ valid: true, code: "VALID", key_id: life.keyId, remaining: 1 });
    expect(life.deleted).toEqual({});
    expect(life.afterwards).toMatchObject({ code: "NOT_FOUND" });
    for (const without of imported) expect(() => load(protoFolder({ without })), without).toThrow(/ENOENT|no such/);
  });

  it("does not keep a dynamic client from leaving out a misspelt field, as docs/grpc.md says", () => {
    const loaded = loadSync("latchkey/v1/keys.proto", { ...loaderOptions, includeDirs: [protoFolder()] });
    const { CreateKey } = loaded["latchkey.v1.KeysService"] as ServiceDefinition;
    const bytesOf = (request: object) => CreateKey?.requestSerialize(request);
    expect(bytesOf({ api_id: "api", remainnig: 5 })).toEqual(bytesOf({ api_id: "api" }));
    expect(bytesOf({ api_id: "api", remaining: 5 })).not.toEqual(bytesOf({ api_id: "api" }));
  });

  it("is read by buf, and says what our own files say", () => {
    const plain = (files: Map<string, FileDescriptorProto>, name: string) => {
      const file = files.get(name) ?? expect.fail(`no ${name}`);
      for (const field of file.messageType.flatMap((message) => message.field)) {
        field.options ??= create(FieldOptionsSchema);
        field.options.debugRedact = false;
      }
      return Buffer.from(toBinary(FileDescriptorProtoSchema, file));
    };
    const published = buildWithBuf(protoFolder());
    const own = buildWithBuf(join(root, "proto"), "--path", join(root, "proto/latchkey/v1"));
    for (const name of ours) expect(plain(published, name).equals(plain(own, name)), name).toBe(true);
    expect(() => buildWithBuf(protoFolder({ without: "google/api/http.proto" }))).toThrow();
  });
});

describe("a fresh clone after npm ci", () => {
  it("is linted and built by buf", () => {
    const cwd = freshClone();
    const buf = (...args: string[]) => execFileSync(join(cwd, "node_modules/.bin/buf"), args, { cwd, stdio: "pipe" });
    expect(buf("lint").toString()).toBe("");
    expect(buf("build").toString()).toBe("");
    rmSync(join(cwd, ".proto"), { recursive: true });
    expect(() => buf("lint")).toThrow();
  });
});

/** The files and their imports, by name. */
function buildWithBuf(folder: string, ...args: string[]): Map<string, FileDescriptorProto> {
  const options = ["build", folder, ...args, "--exclude-source-info", "-o", "-"];
  const image = execFileSync(join(root, "node_modules/.bin/buf"), options, { cwd: root, stdio: "pipe" });
  return new Map(fromBinary(FileDescriptorSetSchema, image).file.map((file) => [file.name, file]));
}
