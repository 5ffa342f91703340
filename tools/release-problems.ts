import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly license: string;
}

export function readManifest(root: string, file: string): Manifest {
  return JSON.parse(readFileSync(join(root, file), "utf8")) as Manifest;
}

/** Everything that speaks against a release of what is in the folder, each in a line. Quick, and changes nothing. */
export function findReleaseProblems(root: string, destination: string): string[] {
  return [...findChanges(root), ...compareVersions(root), ...checkDestination(destination)];
}

/** What is released has to be what is committed. */
function findChanges(root: string): string[] {
  const status = execFileSync("git", ["status", "--porcelain"], { cwd: root, encoding: "utf8" });
  const changed = status.split("\n").filter((line) => line !== "");
  if (changed.length === 0) return [];
  return [`the tree is not clean, commit or remove: ${changed.map((line) => line.slice(3)).join(", ")}`];
}

/** package.json says which version it is; the others have to agree. */
function compareVersions(root: string): string[] {
  const { version } = readManifest(root, "package.json");
  const problems: string[] = [];
  const compare = (where: string, found: string | undefined) => {
    if (found !== version) problems.push(`${where} says ${found ?? "no version"}, package.json says ${version}`);
  };
  const lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as {
    version?: string;
    packages?: Record<string, { version?: string }>;
  };
  compare("package-lock.json", lock.version);
  compare("the package of package-lock.json", lock.packages?.[""]?.version);
  compare("client/package.json", readManifest(root, "client/package.json").version);

  const changelog = readFileSync(join(root, "CHANGELOG.md"), "utf8");
  const [, ...sections] = changelog.split(/^## /m);
  const unreleased = sections.find((text) => text.startsWith("Unreleased\n"))?.slice("Unreleased".length) ?? "";
  if (unreleased.trim() !== "") problems.push("CHANGELOG.md has changes under Unreleased: move them into the version");
  const newest = sections.find((text) => !text.startsWith("Unreleased\n"))?.split("\n")[0] ?? "";
  const [, newestVersion, date] = /^(\d+\.\d+\.\d+)(?: - (\d{4}-\d\d-\d\d))?$/.exec(newest) ?? [];
  compare("the topmost section of CHANGELOG.md", newestVersion);
  if (date === undefined || Number.isNaN(Date.parse(date))) {
    problems.push(`the topmost section of CHANGELOG.md needs a date: "## ${version} - YYYY-MM-DD"`);
  }
  return problems;
}

/** Files of another run would be among the checksums. */
function checkDestination(destination: string): string[] {
  const isEmpty = !existsSync(destination) || readdirSync(destination).length === 0;
  return isEmpty ? [] : [`${destination} is not empty: remove it`];
}
