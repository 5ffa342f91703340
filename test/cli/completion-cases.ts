import { execFile } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect } from "vitest";
import { tempFolder } from "../support/temp-folder.ts";

/** What is typed, the cursor at its end, and what must be among the candidates. */
export const cases: readonly (readonly [typed: string, candidates: readonly string[], others?: readonly string[]])[] = [
  ["latchkey ke", ["keys"], ["serve"]],
  ["latchkey ", ["serve", "keys", "root-keys", "profile", "completion", "migrate"]],
  ["latchkey keys up", ["update", "update-remaining"], ["create"]],
  ["latchkey keys create --ra", ["--ratelimit", "--ratelimit.limit", "--ratelimits.name"], ["--name"]],
  ["latchkey keys create --api-id x --refill.interval ", ["daily", "monthly"], ["--name"]],
  ["latchkey keys update key_1 --unset ow", ["owner-id"]],
  ["latchkey keys list --profile p", ["production"], ["keys"]],
  ["latchkey migrate ", ["status", "up"]],
  ["latchkey completion ", ["bash", "zsh", "fish"]],
  ["latchkey keys rev", ["revoke"], ["reroll"]],
  ["latchkey keys list -o ", ["csv", "name"], ["--all"]],
  ["latchkey profile use p", ["production"], ["profile"]],
];

/** A home with a profile. */
export function homeWithProfile(): string {
  const folder = tempFolder();
  mkdirSync(join(folder, ".config/latchkey"), { recursive: true });
  writeFileSync(join(folder, ".config/latchkey/production.json"), "{}");
  return folder;
}

export async function candidatesIn(folder: string, shell: string, args: readonly string[]): Promise<string[]> {
  const options = { env: { PATH: process.env.PATH, HOME: folder }, cwd: folder };
  return (await promisify(execFile)(shell, args, options)).stdout.split(/\s+/).filter(Boolean);
}

export function check(found: readonly string[], [typed, wanted, unwanted = []]: (typeof cases)[number]): void {
  expect(found, typed).toEqual(expect.arrayContaining([...wanted]));
  expect(
    found.filter((each) => unwanted.includes(each)),
    typed,
  ).toEqual([]);
}
