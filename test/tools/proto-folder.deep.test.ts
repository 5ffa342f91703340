import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { shellProgram } from "../support/shell-programs.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { freshClone, ours, protoFolder } from "./written-protos.ts";

describe("the folder of proto files", () => {
  it("is read by protoc, also by the old one that Debian has", () => {
    expect(protoc(protoFolder(), "--descriptor_set_out=/dev/null")).toBe("");
    const without = protoFolder({ without: "google/api/http.proto" });
    expect(() => protoc(without, "--descriptor_set_out=/dev/null")).toThrow(/http.proto: File not found/);
  });

  it("is in .proto of a fresh clone after npm ci, and says where generated code belongs", () => {
    const out = tempFolder();
    protoc(join(freshClone(), ".proto"), `--java_out=${out}`, `--csharp_out=${out}`, "--csharp_opt=base_namespace=");
    const made = ["latchkey/v1/CreateKeyRequest.java", "Latchkey/V1/Keys.cs"];
    expect(made.filter((file) => !existsSync(join(out, file)))).toEqual([]);
  });
});

function protoc(folder: string, ...options: string[]): string {
  return execFileSync(shellProgram("protoc"), ["-I", folder, ...options, ...ours], { stdio: "pipe" }).toString();
}
