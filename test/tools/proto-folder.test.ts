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
import { beforeAll, describe, expect, it } from "vitest";
import { writeValidateProto } from "../../tools/generate.ts";
import { writeProtoFolder } from "../../tools/proto-folder.ts";
import { liveOnce, loaderOptions } from "../support/dynamic-client.ts";
import { startTestServer } from "../support/in-process-server.ts";
import { root } from "../support/repository.ts";
import { shellProgram } from "../support/shell-programs.ts";
import { tempFolder } from "../support/temp-folder.ts";

const ours = readdirSync(join(root, "proto/latchkey/v1")).map((name) => `latchkey/v1/${name}`);
const imported = ["buf/validate/validate.proto", "google/api/annotations.proto", "google/api/http.proto"];

/** The folder, without one of its files if that is to be missed. */
function protoFolder({ without }: { without?: string } = {}): string {
  const folder = join(tempFolder(), "proto");
  writeProtoFolder(folder);
  if (without !== undefined) rmSync(join(folder, without));
  return folder;
}

describe("the folder of proto files", () => {
  beforeAll(() => writeValidateProto());

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

  it("is read by protoc, also by the old one that Debian has", () => {
    const read = (folder: string) =>
      execFileSync(shellProgram("protoc"), ["-I", folder, "--descriptor_set_out=/dev/null", ...ours], {
        stdio: "pipe",
      });
    expect(read(protoFolder()).toString()).toBe("");
    expect(() => read(protoFolder({ without: "google/api/http.proto" }))).toThrow(/http.proto: File not found/);
  });
});

/** The files and their imports, by name. */
function buildWithBuf(folder: string, ...args: string[]): Map<string, FileDescriptorProto> {
  const options = ["build", folder, ...args, "--exclude-source-info", "-o", "-"];
  const image = execFileSync(join(root, "node_modules/.bin/buf"), options, { cwd: root, stdio: "pipe" });
  return new Map(fromBinary(FileDescriptorSetSchema, image).file.map((file) => [file.name, file]));
}
