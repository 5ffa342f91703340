import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/* Requests as bytes, one connection's worth in each file. What the harness finds in a long run is added. */

const folder = join(import.meta.dirname, "corpus");

export interface CorpusEntry {
  readonly name: string;
  readonly bytes: Buffer;
}

export function readCorpus(): CorpusEntry[] {
  const names = readdirSync(folder)
    .filter((name) => name.endsWith(".http"))
    .sort();
  return names.map((name) => ({ name, bytes: readFileSync(join(folder, name)) }));
}

/** Keeps a finding, under a name that its bytes decide: the same one is kept once. Answers the file's name. */
export function addToCorpus(bytes: Buffer): string {
  const name = `found-${createHash("sha256").update(bytes).digest("hex").slice(0, 12)}.http`;
  writeFileSync(join(folder, name), bytes);
  return name;
}
