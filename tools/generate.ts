// Generates everything under gen/ again from proto/. `npm test` runs it into the working tree and fails on a difference.
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { writeProtoFolder } from "./proto-folder.ts";

const root = join(import.meta.dirname, "..");

export function generate(outDir: string): void {
  writeProtoFolder();
  execFileSync("buf", ["generate", "--output", outDir], { cwd: root, stdio: "inherit" });
}

if (import.meta.main) generate(root);
