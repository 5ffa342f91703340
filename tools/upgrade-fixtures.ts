// `npm run upgrade-fixtures`: data and artefact of this version, for the tests of later ones (test/upgrade). It makes the
// folder of this version again, until the version is released.
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildArtefact } from "../test/support/artefact.ts";
import { startLatchkey } from "../test/support/latchkey-process.ts";
import { postgresBinaries } from "../test/support/postgres-binaries.ts";
import { PostgresServer } from "../test/support/postgres-server.ts";
import { testRootKey } from "../test/support/test-root-key.ts";
import { makeKeptData } from "../test/upgrade/kept-data.ts";
import { packProgram } from "./pack.ts";
import { readManifest } from "./release-problems.ts";

const root = join(import.meta.dirname, "..");
const { version } = readManifest(root, "package.json");
const target = join(root, "test/upgrade/fixtures", version);
const undo: (() => unknown)[] = [];
const atEnd = (step: () => unknown) => void undo.push(step);

if (execFileSync("git", ["tag", "--list", `v${version}`], { cwd: root, encoding: "utf8" }) !== "") {
  throw new Error(`${version} is released: what it wrote stays as it is`);
}
const folder = mkdtempSync(join(tmpdir(), "latchkey-fixtures-"));
atEnd(() => rmSync(folder, { recursive: true, force: true }));
try {
  rmSync(target, { recursive: true, force: true });
  mkdirSync(target, { recursive: true });
  // Processes of tests keep compiled code in its folder.
  atEnd(await buildArtefact());
  const program = await keepArtefact();
  await keepEmbedded(program);
  await keepPostgres(program);
} finally {
  for (const step of undo.reverse()) await step();
}
for (const name of readdirSync(target))
  console.log(`${join(target, name)}: ${statSync(join(target, name)).size} bytes`);

/** The package without what does not run: documents and source maps, which are four fifths of it. Returns its program. */
async function keepArtefact(): Promise<string> {
  const { tarball } = await packProgram(folder);
  execFileSync("tar", ["-xzf", tarball, "-C", folder]);
  const [dist, manifest] = ["package/dist", "package/package.json"];
  const kept = readdirSync(join(folder, dist)).filter((name) => !name.endsWith(".map"));
  const sameEachTime = ["--owner=0", "--group=0", "--numeric-owner", "--mtime=@0", "--sort=name"];
  const names = [manifest, ...kept.map((name) => join(dist, name))];
  execFileSync("tar", ["-cf", join(folder, "kept.tar"), ...sameEachTime, "-C", folder, ...names]);
  const packed = execFileSync("gzip", ["-9nc", join(folder, "kept.tar")], { maxBuffer: 1 << 28 });
  writeFileSync(join(target, `latchkey-${version}.tgz`), packed);
  return join(folder, dist, "latchkey.js");
}

async function keepEmbedded(program: string): Promise<void> {
  const dataDir = join(folder, "data");
  await makeData(program, { LATCHKEY_DATA_DIR: dataDir }, "embedded.json");
  copyFileSync(join(dataDir, "latchkey.db"), join(target, "latchkey.db"));
}

async function keepPostgres(program: string): Promise<void> {
  const server = await PostgresServer.start();
  atEnd(() => server.remove());
  const url = await server.createDatabase();
  await makeData(program, { DATABASE_URL: url, LATCHKEY_DATA_DIR: join(folder, "data-postgres") }, "postgres.json");
  const options = ["--no-owner", "--no-privileges", "--inserts", "--rows-per-insert=50"];
  const dump = execFileSync(join(postgresBinaries(), "pg_dump"), [...options, url], { encoding: "utf8" });
  // Without what only psql understands.
  writeFileSync(join(target, "postgres.sql"), dump.replaceAll(/^\\(un)?restrict .*\n/gm, ""));
}

/** Runs the artefact on an empty store, uses it, and stops it as an administrator does, so that everything is written. */
async function makeData(program: string, store: Record<string, string>, answers: string): Promise<void> {
  const environment = { ...store, LATCHKEY_ROOT_KEY: testRootKey, LATCHKEY_DRAIN_MS: "0" };
  const latchkey = await startLatchkey(environment, [process.execPath, program, "serve"], atEnd);
  const calls = await makeKeptData(latchkey.baseUrl);
  latchkey.kill("SIGTERM");
  const code = await latchkey.exited;
  if (code !== 0) throw new Error(`latchkey ended with ${code}: ${latchkey.stderr()}`);
  writeFileSync(join(target, answers), `${JSON.stringify(calls, undefined, 2)}\n`);
}
