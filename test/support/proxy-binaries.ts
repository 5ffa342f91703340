import { join } from "node:path";
import { findOrInstall, isExecutable, maskService, pathFolders } from "./debian-programs.ts";

export const proxyNames = ["nginx", "caddy", "haproxy"] as const;
export type ProxyName = (typeof proxyNames)[number];

const debianPackages: Readonly<Record<ProxyName, string>> = {
  nginx: "nginx-light",
  caddy: "caddy",
  haproxy: "haproxy",
};

/** Where the program is. Installed if it is missing; undefined if it cannot be had, and then what needs it is left out. */
export function proxyBinary(name: ProxyName): string | undefined {
  const find = () => [...pathFolders(), "/usr/sbin"].map((folder) => join(folder, name)).find(isExecutable);
  const prepare = () => maskService(name);
  try {
    return findOrInstall({ name, debianPackage: debianPackages[name], find, prepare });
  } catch (error) {
    console.log(`What needs ${name} is left out. ${error instanceof Error ? error.message : error}`);
    return undefined;
  }
}
