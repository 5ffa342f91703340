import { execFile } from "node:child_process";
import { copyFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { builtProgram } from "./artefact.ts";
import { type LatchkeyProcess, startLatchkey } from "./latchkey-process.ts";
import { readText } from "./repository.ts";
import { shellProgram } from "./shell-programs.ts";

/** A numbered step of the documentation: the files that it says it needs, and the commands as they are printed. */
export interface Step {
  readonly files: readonly string[];
  readonly script: string;
}

/** The steps of a section of docs/operations.md, with those of the sections in it. */
export function readSteps(heading: string): Step[] {
  const sections = readText("docs/operations.md").split(/^## /m);
  const section = sections.find((text) => text.startsWith(`${heading}\n`)) ?? "";
  const steps = [...section.matchAll(/^\*\*\d\. (.*?)\n\n```sh\n(.*?)^```/gms)];
  return steps.map(([, words = "", script = ""]) => ({
    files: [...words.matchAll(/`([\w.-]+)`/g)].map(([, file]) => file as string),
    script,
  }));
}

/** Runs commands as somebody would type them, and answers what they print. Rejects when one of them fails. */
export async function bash(
  folder: string,
  script: string,
  options: { readonly env?: NodeJS.ProcessEnv; readonly uid?: number; readonly gid?: number } = {},
): Promise<string> {
  const env = { PATH: process.env.PATH, ...options.env };
  // What the script calls by name is installed if it is missing.
  for (const name of ["curl", "git", "openssl"] as const)
    if (new RegExp(`\\b${name}\\b`).test(script)) shellProgram(name);
  return (await promisify(execFile)("bash", ["-ec", script], { ...options, cwd: folder, env })).stdout;
}

/** A folder in which one machine has the files that a step needs. */
export function machineWith(files: readonly string[], source: string, name: string): string {
  const folder = join(source, name);
  mkdirSync(folder);
  for (const file of files) copyFileSync(join(source, file), join(folder, file));
  return folder;
}

/** Runs the commands, with `latchkey` for what was built, on ports of this machine. */
export function startStep(
  folder: string,
  script: string,
  internalPort: number,
  environment: Record<string, string> = {},
): Promise<LatchkeyProcess> {
  const latchkey = `latchkey() { exec '${process.execPath}' '${builtProgram()}' "$@"; }`;
  const ports = { PORT: "0", LATCHKEY_INTERNAL_PORT: String(internalPort) };
  // Without a terminal, so that SIGHUP means a reload.
  return startLatchkey({ ...ports, ...environment }, [
    "setsid",
    "bash",
    "-ec",
    `cd '${folder}'\n${latchkey}\n${script}`,
  ]);
}
