import { execFileSync } from "node:child_process";
import { beforeAll, describe, expect, it } from "vitest";
import { writeValidateProto } from "../../tools/generate.ts";
import { shellProgram } from "../support/shell-programs.ts";
import { ours, protoFolder } from "./written-protos.ts";

describe("the folder of proto files", () => {
  beforeAll(() => writeValidateProto());

  it("is read by protoc, also by the old one that Debian has", () => {
    const read = (folder: string) =>
      execFileSync(shellProgram("protoc"), ["-I", folder, "--descriptor_set_out=/dev/null", ...ours], {
        stdio: "pipe",
      });
    expect(read(protoFolder()).toString()).toBe("");
    expect(() => read(protoFolder({ without: "google/api/http.proto" }))).toThrow(/http.proto: File not found/);
  });
});
