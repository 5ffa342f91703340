import { execFileSync } from "node:child_process";
import { cpSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { writeProtoFolder } from "../../tools/proto-folder.ts";
import { root } from "../support/repository.ts";
import { tempFolder } from "../support/temp-folder.ts";

/** Our public files, as they are named in the folder. */
export const ours = readdirSync(join(root, "proto/latchkey/v1")).map((name) => `latchkey/v1/${name}`);

/** The folder, without one of its files if that is to be missed. */
export function protoFolder({ without }: { without?: string } = {}): string {
  const folder = join(tempFolder(), "proto");
  writeProtoFolder(folder);
  if (without !== undefined) rmSync(join(folder, without));
  return folder;
}

/** A clone of which nothing is there but what is committed and what `npm ci` makes: packages, and what `prepare` writes. */
export function freshClone(): string {
  const clone = join(tempFolder(), "latchkey");
  for (const name of ["proto", "tools", "buf.yaml", "LICENSE", "package.json"]) {
    cpSync(join(root, name), join(clone, name), { recursive: true });
  }
  symlinkSync(join(root, "node_modules"), join(clone, "node_modules"));
  execFileSync("npm", ["run", "prepare"], { cwd: clone, stdio: "pipe" });
  return clone;
}
