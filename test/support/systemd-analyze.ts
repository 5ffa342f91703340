import { join } from "node:path";
import { findOrInstall, isExecutable, pathFolders } from "./debian-programs.ts";

/** Where `systemd-analyze` is. It reads units without a systemd that runs. */
export function systemdAnalyze(): string {
  const find = () =>
    pathFolders()
      .map((folder) => join(folder, "systemd-analyze"))
      .find(isExecutable);
  return findOrInstall({ name: "systemd-analyze", debianPackage: "systemd", find });
}
