// The key cache beside one Map: bytes for each key, time of a hit, the longest stop while it fills; and what a
// verification from memory allocates. `npm run bench:cache`; takes about three minutes, prints tables.
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { type CacheName, caches } from "./cache/caches.ts";
import { type Kind, kinds } from "./cache/key-rows.ts";

const names = Object.keys(caches) as CacheName[];

heading("bytes for each of a million keys that have");
for (const kind of Object.keys(kinds) as Kind[]) compare(kind, (name) => measure<number>("bytes", name, kind), 0);

heading("nanoseconds for a hit among");
for (const keys of ["1000", "1000000"]) compare(`${keys} keys`, (name) => measure<number>("hit", name, keys), 0);

heading("milliseconds, with a million keys");
const pauses = Object.fromEntries(names.map((name) => [name, medianOf(name)]));
for (const what of Object.keys(pauses.Latchkey ?? {})) compare(what, (name) => pauses[name]?.[what] as number, 2);

console.log("\n| a verification from memory: part | bytes allocated |\n|---|---|");
for (const [part, bytes] of Object.entries(measure<Record<string, number>>("allocations"))) {
  console.log(`| ${part} | ${bytes} |`);
}

function heading(what: string): void {
  console.log(`\n| ${what} | ${names.join(" | ")} | ratio |\n|---|---|---|---|`);
}

function compare(what: string, measured: (name: CacheName) => number, digits: number): void {
  const [plain, ours] = names.map(measured) as [number, number];
  console.log(`| ${what} | ${plain.toFixed(digits)} | ${ours.toFixed(digits)} | ${ratioOf(ours, plain)} |`);
}

function ratioOf(ours: number, plain: number): string {
  return plain === 0 ? "–" : `${(ours / plain).toFixed(2)} ×`;
}

/** Of three fills. */
function medianOf(name: CacheName): Record<string, number> {
  const runs = [1, 2, 3].map(() => measure<Record<string, number>>("pauses", name));
  const medians = Object.keys(runs[0] ?? {}).map((what) => {
    const values = runs.map((run) => run[what] as number).sort((a, b) => a - b);
    return [what, values[1] as number] as const;
  });
  return Object.fromEntries(medians);
}

function measure<Result>(...args: string[]): Result {
  const script = join(import.meta.dirname, "cache/measure.ts");
  // A garbage collection would hide earlier allocations.
  const young = args[0] === "allocations" ? ["--min-semi-space-size=256", "--max-semi-space-size=256"] : [];
  const flags = ["--expose-gc", "--max-old-space-size=3000", ...young];
  return JSON.parse(execFileSync(process.execPath, [...flags, script, ...args], { encoding: "utf8" })) as Result;
}
