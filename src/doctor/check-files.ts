import { statSync } from "node:fs";
import { shellWord } from "../domain/shell-word.ts";
import type { Report } from "./run-checks.ts";

export interface PrivateFile {
  /** What it is, for people. */
  readonly what: string;
  readonly path: string;
}

/** The permissions of other users; not of the group, by which orchestrators pass secrets on. */
const forOthers = 0o007;

/** Files that only the service's user should reach. Those that are not there are left out. */
export function checkFiles(files: readonly PrivateFile[], { checked, found }: Report): void {
  let count = 0;
  for (const { what, path } of files) {
    const stats = statSync(path, { throwIfNoEntry: false });
    if (stats === undefined) continue;
    count++;
    if ((stats.mode & forOthers) === 0) continue;
    const mode = (stats.mode & 0o777).toString(8).padStart(3, "0");
    found(
      "file-open-to-others",
      `${what} ${path} is open to other users (mode ${mode})`,
      `chmod ${stats.isDirectory() ? "700" : "600"} ${shellWord(path)}`,
    );
  }
  checked(`${count} private ${count === 1 ? "file or folder" : "files and folders"}`);
}
