// `npm run release`: checks everything, then makes what is published: both packages, a list of what is inside each
// (SBOM), and checksums. It publishes nothing.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join, relative, resolve } from "node:path";
import { parseArgs } from "node:util";
import { type PackedBuild, pack } from "./pack.ts";
import { findReleaseProblems, readManifest } from "./release-problems.ts";
import { describeContents } from "./sbom.ts";

const root = join(import.meta.dirname, "..");
const checksums = "SHA256SUMS";
/** The contract as last released, without the internal protocol. */
const released = "proto/released.binpb";
const contract = ["build", "proto", "--path", "proto/latchkey/v1"];

/** Makes the files of a release in the folder, and answers their names. The same sources make the same bytes. */
export async function makeRelease(destination: string): Promise<string[]> {
  mkdirSync(destination, { recursive: true });
  const { latchkey, client } = await pack(destination);
  writeSbom(latchkey, { ...readManifest(root, "package.json"), type: "application" });
  writeSbom(client, { ...readManifest(root, "client/package.json"), type: "library" });
  const names = readdirSync(destination).sort();
  const lines = names.map((name) => {
    const hash = createHash("sha256").update(readFileSync(join(destination, name)));
    return `${hash.digest("hex")}  ${name}\n`;
  });
  writeFileSync(join(destination, checksums), lines.join(""));
  return [...names, checksums];
}

function writeSbom(
  { tarball, files, bundled }: PackedBuild,
  manifest: ReturnType<typeof readManifest> & { readonly type: "application" | "library" },
): void {
  const { name, version, license, type } = manifest;
  // The contract imports them, so the client ships them beside its own. All are under Apache's licence.
  const foreign = files.map(({ path }) => path).filter((path) => /^proto\/(?!latchkey\/).*\.proto$/.test(path));
  const shipped = foreign.map((path) => ({
    path,
    bytes: execFileSync("tar", ["-xzOf", tarball, `package/${path}`]),
    license: "Apache-2.0",
  }));
  const sbom = describeContents(root, { name, version, license, type, bundled, files: shipped });
  writeFileSync(tarball.replace(/\.tgz$/, ".cdx.json"), `${JSON.stringify(sbom, undefined, 2)}\n`);
}

function buildContract(): Buffer {
  return execFileSync("buf", [...contract, "-o", "-#format=binpb"], { cwd: root });
}

function refuse(problems: readonly string[]): never {
  console.error(`Nothing is released:\n${problems.map((problem) => `  - ${problem}\n`).join("")}`);
  process.exit(1);
}

function run(command: string, args: readonly string[]): void {
  try {
    execFileSync(command, args, { cwd: root, stdio: "inherit" });
  } catch {
    refuse([`\`${[command, ...args].join(" ")}\` fails, see above`]);
  }
}

if (import.meta.main) {
  const { values, positionals } = parseArgs({ options: { "no-tests": { type: "boolean" } }, allowPositionals: true });
  const { version } = readManifest(root, "package.json");
  const destination = resolve(positionals[0] ?? join(root, "release", version));
  const problems = findReleaseProblems(root, destination);
  if (problems.length > 0) refuse(problems);
  // `npm test` begins with the checks.
  if (values["no-tests"]) run(process.execPath, [join(root, "tools/check.ts")]);
  else {
    run("npm", ["test"]);
    run("npm", ["run", "test:deep"]);
  }
  // Later versions are compared with it.
  if (!buildContract().equals(readFileSync(join(root, released)))) {
    refuse([`${released} is not this contract: \`npx buf ${contract.join(" ")} -o ${released}\`, and commit that`]);
  }
  const made = await makeRelease(destination);
  const folder = relative(process.cwd(), destination) || ".";
  console.log(`\n${folder} has\n${made.map((name) => `  ${name}\n`).join("")}`);
  const tarballs = made.filter((name) => name.endsWith(".tgz")).map((name) => join(folder, basename(name)));
  const publishing = tarballs.map((tarball) => `  npm publish --access public ./${tarball}\n`).join("");
  console.log(`To publish it:\n  (cd ${folder} && sha256sum -c ${checksums})\n${publishing}  git tag v${version}`);
}
