import { statfsSync } from "node:fs";
import { resolve } from "node:path";
import { folderProblem } from "./check-data-folder.ts";
import { nearestThatExists } from "./nearest-folder.ts";
import type { Check } from "./run-checks.ts";

const mebibyte = 2 ** 20;
/** The write-ahead log of the embedded store alone takes up to 64 MiB. */
const fullBelow = 64 * mebibyte;
const lowBelow = 512 * mebibyte;

/** Room for the data folder, which holds the store, or only a generated root key and saved windows. */
export function checkDisk(dataDir: string, isEmbedded: boolean): Check {
  return {
    area: "disk",
    run({ looked, found }) {
      // A read-only file system says that it has no room, and nothing is written to it.
      if (!isEmbedded && folderProblem(resolve(dataDir)) !== undefined) return;
      const folder = nearestThatExists(resolve(dataDir));
      const { bavail, bsize } = statfsSync(folder);
      const freeBytes = bavail * bsize;
      const free = `${Math.floor(freeBytes / mebibyte)} MiB`;
      looked(`${free} free in ${folder}`);
      const fix = `Make room (du -xh ${folder} | sort -h | tail), or move the folder to a larger disk and set LATCHKEY_DATA_DIR.`;
      if (isEmbedded && freeBytes < fullBelow) found("disk-full", `${free} are free for the data in ${dataDir}`, fix);
      else if (freeBytes < (isEmbedded ? lowBelow : fullBelow))
        found("disk-low", `${free} are free for the data folder ${dataDir}`, fix);
    },
  };
}
