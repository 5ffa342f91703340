import { readdirSync, rmSync } from "node:fs";
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
