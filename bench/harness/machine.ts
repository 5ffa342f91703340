import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { postgresBinaries } from "../../test/support/postgres-binaries.ts";
import { redisBinary } from "../../test/support/redis-binary.ts";

const root = join(import.meta.dirname, "../..");

/** Where, with what and when it was measured, in a line. */
export function describeMachine(loadAverageBefore: number): string {
  const peers = JSON.parse(readFileSync(join(root, "bench/peers/package.json"), "utf8")).dependencies;
  const ours = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const used = { ...ours.dependencies, ...ours.devDependencies, ...peers } as Record<string, string>;
  const named = ["@grpc/grpc-js", "pg", "ioredis", "rate-limiter-flexible", "fastify", "better-auth"];
  return [
    `${os.availableParallelism()} cores (${os.arch()}), ${Math.round(os.totalmem() / 2 ** 30)} GB`,
    `load average ${loadAverageBefore.toFixed(1)} before the run`,
    /^PRETTY_NAME="(.*)"$/m.exec(readFileSync("/etc/os-release", "utf8"))?.[1] ?? os.version(),
    `Node ${process.versions.node}`,
    `PostgreSQL ${versionOf(join(postgresBinaries(), "postgres"), "-V")} with \`fsync\` on`,
    `Redis ${versionOf(redisBinary(), "-v", "redis-server")}`,
    ...named.map((name) => `${name} ${used[name]}`),
    new Date().toISOString().slice(0, 10),
  ].join(", ");
}

function versionOf(program: string, flag: string, argv0 = program): string {
  const { stdout } = spawnSync(program, [flag], { encoding: "utf8", argv0 });
  return /\d+\.\d+(\.\d+)?/.exec(stdout)?.[0] ?? "?";
}
