import { readFileSync } from "node:fs";
import type { Report } from "./run-checks.ts";

/** For the store, the database, Redis, coordinators, the internal port and the program itself. */
const ownFiles = 100;

/** Whether the system lets this user open as many files as there may be connections. */
export function checkOpenFiles(connectionsMax: number, { checked, found }: Report): void {
  const filesMax = readOpenFilesMax();
  checked(filesMax === undefined ? "this system does not say how many there may be" : `${filesMax} at most`);
  const wanted = connectionsMax + ownFiles;
  if (filesMax === undefined || filesMax >= wanted) return;
  found(
    "open-files-low",
    `${filesMax} files may be open, and LATCHKEY_CONNECTIONS_MAX is ${connectionsMax}`,
    `ulimit -n ${wanted} (systemd: LimitNOFILE=${wanted}; Docker: --ulimit nofile=${wanted}:${wanted}), ` +
      `or set LATCHKEY_CONNECTIONS_MAX=${Math.max(1, filesMax - ownFiles)}`,
  );
}

/** Node raises its own bound as far as it may: this is what the service would have. */
function readOpenFilesMax(): number | undefined {
  try {
    const [, soft] = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8")) ?? [];
    return soft === undefined ? undefined : Number(soft);
  } catch {
    return undefined;
  }
}
