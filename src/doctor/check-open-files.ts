import { readFileSync } from "node:fs";
import type { Settings } from "../config/settings.ts";
import type { Check } from "./run-checks.ts";

/** For the store, the database, Redis, coordinators, the internal port and the program itself. */
const ownFiles = 100;

/** Whether the system lets this user open as many files as there may be connections. */
export function checkOpenFiles({ connectionsMax }: Pick<Settings, "connectionsMax">): Check {
  return {
    area: "open files",
    run({ looked, found }) {
      const filesMax = readOpenFilesMax();
      if (filesMax === undefined) return looked("this system does not say how many there may be");
      looked(`${filesMax} at most`);
      const wanted = connectionsMax + ownFiles;
      if (filesMax >= wanted) return;
      found(
        "open-files-low",
        `${filesMax} files may be open, and LATCHKEY_CONNECTIONS_MAX is ${connectionsMax}`,
        `ulimit -n ${wanted} (systemd: LimitNOFILE=${wanted}; Docker: --ulimit nofile=${wanted}:${wanted}), ` +
          `or set LATCHKEY_CONNECTIONS_MAX=${Math.max(1, filesMax - ownFiles)}`,
      );
    },
  };
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
