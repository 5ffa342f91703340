// Generates everything under gen/ again. `npm test` runs it into the working tree and fails on a difference.
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { emitResources } from "./emit-resources.ts";
import { writeProtoFolder } from "./proto-folder.ts";

const root = join(import.meta.dirname, "..");

export function generate(outDir: string): void {
  writeProtoFolder();
  execFileSync("buf", ["generate", "--output", outDir], { cwd: root, stdio: "inherit" });
  for (const [path, text] of emitResources()) {
    const file = join(outDir, "gen", path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
}

if (import.meta.main) generate(root);
