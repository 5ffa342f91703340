import { execFileSync } from "node:child_process";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Bench } from "../harness/section.ts";
import { barePort, type ServerProcess, startServer } from "./server-process.ts";

const folder = join(import.meta.dirname, "../peers");
const production = { environment: { NODE_ENV: "production" } };

/** Peers are a separate package, so that users who only run Latchkey do not install them. */
export function installPeers(): void {
  // npm writes the first when it has installed everything.
  const [installed, wanted] = ["node_modules/.package-lock.json", "package-lock.json"].map((name) =>
    statSync(join(folder, name), { throwIfNoEntry: false }),
  );
  if (installed !== undefined && wanted !== undefined && installed.mtimeMs >= wanted.mtimeMs) return;
  console.log("Installing the peers: npm ci --prefix bench/peers");
  execFileSync("npm", ["ci", "--prefix", folder, "--ignore-scripts"], { stdio: ["ignore", "ignore", "inherit"] });
}

/** fastify with rate-limiter-flexible, which knows these keys. */
export function startFastify(
  bench: Bench,
  kind: "memory" | "redis" | "postgres",
  keys: readonly string[],
  storeUrl = "",
): Promise<ServerProcess> {
  const keysFile = join(bench.folder, `fastify-${kind}-keys`);
  writeFileSync(keysFile, JSON.stringify(keys));
  return startServer(bench, [join(folder, "fastify-server.js"), kind, keysFile, storeUrl], barePort, production);
}

/** better-auth on an empty database, and so many keys that it has made. */
export async function startBetterAuth(
  bench: Bench,
  databaseUrl: string,
  keyCount: number,
): Promise<{ server: ServerProcess; keys: string[] }> {
  const keysFile = join(bench.folder, "better-auth-keys");
  const args = [join(folder, "better-auth-server.js"), databaseUrl, `${keyCount}`, keysFile];
  const server = await startServer(bench, args, barePort, production);
  return { server, keys: JSON.parse(readFileSync(keysFile, "utf8")) };
}
