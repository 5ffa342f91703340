import { spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isExecutable, pathFolders, unpackProgram } from "../support/debian-programs.ts";
import { root } from "../support/repository.ts";
import { tempFolder } from "../support/temp-folder.ts";

/** Beside what npm has installed, as in npm-programs.ts. */
const cache = join(root, "node_modules/.cache/latchkey-tests");

/** Prometheus' checker. Debian's package has a server of 100 MB beside it, which no test needs. */
function promtool(): string {
  const found = [...pathFolders(), cache].map((folder) => join(folder, "promtool")).find(isExecutable);
  if (found !== undefined) return found;
  mkdirSync(cache, { recursive: true });
  const target = join(cache, "promtool");
  const programs = { name: "Prometheus' promtool", debianPackage: "prometheus", find: () => undefined };
  unpackProgram(programs, "usr/bin/promtool", target);
  return target;
}

/** What promtool says against a file of rules; empty if nothing. */
export function checkRules(file: string): string {
  return run("check", "rules", file);
}

/** What promtool says against expressions by their names; empty if nothing. */
export function checkExpressions(expressions: Readonly<Record<string, string>>): string {
  const rules = Object.entries(expressions).map(([name, expr]) => ({ record: "checked", expr, labels: { name } }));
  return checkRules(writeJson({ groups: [{ name: "expressions", rules }] }));
}

/** What promtool finds different from what a test expects of rules; empty if nothing. */
export function testRules(test: object): string {
  return run("test", "rules", writeJson(test));
}

/** JSON is YAML, too. */
function writeJson(value: object): string {
  const file = join(tempFolder(), "rules.yml");
  writeFileSync(file, JSON.stringify(value));
  return file;
}

function run(...args: string[]): string {
  const { status, stdout, stderr, error } = spawnSync(promtool(), args, { encoding: "utf8" });
  if (error) throw error;
  return status === 0 ? "" : `${stdout}${stderr}`;
}
