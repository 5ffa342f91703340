import { statSync } from "node:fs";
import type { Check } from "./run-checks.ts";

export interface PrivateFile {
  /** What it is, for people. */
  readonly what: string;
  readonly path: string;
}

/** Of other users; not of the group, by which orchestrators hand secrets over. */
const forOthers = 0o007;

/** Files that only the service's user should reach. Those that are not there are left out. */
export function checkFiles(files: readonly PrivateFile[]): Check {
  return {
    area: "files",
    run({ looked, found }) {
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
          `chmod ${stats.isDirectory() ? "700" : "600"} ${quote(path)}`,
        );
      }
      looked(`${count} private ${count === 1 ? "file or folder" : "files and folders"}`);
    },
  };
}

/** As a shell takes it. */
export function quote(path: string): string {
  return /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}
