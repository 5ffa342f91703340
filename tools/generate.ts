// Generates everything under gen/ again, the alert rules, and a column of docs/metrics.md. `npm test` runs it into the working tree and fails on a difference.
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { emitIncidentSigns } from "./emit-incident-signs.ts";
import { emitResources } from "./emit-resources.ts";
import { writeProtoFolder } from "./proto-folder.ts";

const root = join(import.meta.dirname, "..");

export function generate(outDir: string): void {
  writeProtoFolder();
  execFileSync("buf", ["generate", "--output", outDir], { cwd: root, stdio: "inherit" });
  const resources = [...emitResources()].map(([path, text]) => [join("gen", path), text] as const);
  for (const [path, text] of [...resources, ...emitIncidentSigns()]) {
    const file = join(outDir, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
}

if (import.meta.main) generate(root);
