// Everything that can be found out without running the service: `npm run check`, and the first half of `npm test`.
import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { generate } from "./generate.ts";

const root = join(import.meta.dirname, "..");

const checks: Record<string, () => Promise<void>> = {
  "the contract is tidy": () => run("buf", "lint"),
  "the contract breaks no released one": () =>
    run("buf", "breaking", "proto", "--exclude-imports", "--against", "proto/released.binpb"),
  "format and lint": () => run("biome", "check", "--error-on-warnings", "."),
  types: () => run("tsc", "-p", "tsconfig.json"),
  "the domain is pure": () => run("tsc", "-p", "tsconfig.domain.json"),
  "nothing is unused": () => run("knip", "--no-progress"),
};

// First, because it writes a file that the contract imports. The others side by side.
const first = await check("generated code is up to date", compareGenerated);
const others = await Promise.all(Object.entries(checks).map(([name, step]) => check(name, step)));
// Printed last, where it is seen.
const failures = [first, ...others].filter((failure) => failure !== undefined);
for (const failure of failures) console.log(failure);
if (failures.length > 0) process.exit(1);

async function check(name: string, step: () => Promise<void> | void): Promise<string | undefined> {
  try {
    await step();
    console.log(`ok    ${name}`);
    return undefined;
  } catch (error) {
    return `FAIL  ${name}\n${(error as Error).message}`;
  }
}

function compareGenerated(): void {
  const fresh = mkdtempSync(join(tmpdir(), "latchkey-gen-"));
  try {
    generate(fresh);
    const regenerated = filesBelow(fresh);
    const others = [...regenerated.keys()].filter((name) => !name.startsWith("gen/"));
    const committed = new Map([...filesBelow(join(root, "gen"))].map(([name, text]) => [join("gen", name), text]));
    for (const name of others) committed.set(name, readFileSync(join(root, name), "utf8"));
    const names = new Set([...committed.keys(), ...regenerated.keys()]);
    const different = [...names].filter((name) => committed.get(name) !== regenerated.get(name));
    if (different.length > 0) throw new Error(`run \`npm run generate\`; it changes ${different.join(", ")}`);
  } finally {
    rmSync(fresh, { recursive: true });
  }
}

function filesBelow(folder: string): Map<string, string> {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return new Map(
    entries.map((entry) => {
      const path = join(entry.parentPath, entry.name);
      return [path.slice(folder.length + 1), readFileSync(path, "utf8")];
    }),
  );
}

/** Runs a tool of node_modules/.bin, which npm puts on the path; its output is shown only when it fails. */
function run(command: string, ...args: string[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: root });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.on("data", (chunk) => {
        output += chunk;
      });
    }
    child.on("error", reject);
    child.on("close", (code) => (code === 0 ? resolve() : reject(new Error(output))));
  });
}
