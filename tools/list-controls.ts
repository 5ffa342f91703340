// `npm run controls`: the names of all broken variants and of the tests that they must fail, in both test commands. A change
// of the tests must not lose any: compare the lists from before and after it.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const root = join(import.meta.dirname, "..");
/** How tests say that something is broken on purpose. A test of the product that is listed too does no harm. */
const control = /\bbroken\b|\bcontrol\b|\bcaught\b|\bcatch|\bnotice|\bwould\b|\bmistake|unguarded|\bseen to\b/i;
/** Another one in each run: two lists can only be compared without it. */
const randomSeed = /\bseed \d+/g;

interface ListedTest {
  readonly name: string;
}

function list(deep: "on" | "off"): string[] {
  const folder = mkdtempSync(join(tmpdir(), "latchkey-controls-"));
  const file = join(folder, "tests.json");
  try {
    const env = { ...process.env, LATCHKEY_TEST_DEEP: deep };
    execFileSync("vitest", ["list", "--staticParse=false", `--json=${file}`], {
      cwd: root,
      env,
      stdio: ["ignore", "ignore", "inherit"],
    });
    return (JSON.parse(readFileSync(file, "utf8")) as ListedTest[]).map(({ name }) =>
      name.replace(randomSeed, "seed …"),
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const names = new Set([...list("off"), ...list("on")].filter((name) => control.test(name)));
for (const name of [...names].sort()) console.log(name);
