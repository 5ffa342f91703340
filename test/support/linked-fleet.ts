import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FaultyProxy } from "./faulty-proxy.ts";
import { Fleet } from "./fleet.ts";
import type { RedisServer } from "./redis-server.ts";

/** Replicas on one database and one Redis, which each of them reaches over a link of its own. */
export interface LinkedFleet {
  readonly fleet: Fleet;
  readonly links: readonly FaultyProxy[];
}

/** Starts one replica per round trip to Redis that is given. The links live in this process: keep it responsive. */
export async function startLinkedFleet(options: {
  readonly databaseUrl: string;
  readonly redis: RedisServer;
  readonly roundTripsMs: readonly number[];
  readonly environment?: Record<string, string>;
  readonly atEnd: (undo: () => unknown) => void;
}): Promise<LinkedFleet> {
  const { databaseUrl, redis, roundTripsMs, environment, atEnd } = options;
  const links = await Promise.all(roundTripsMs.map(() => FaultyProxy.start(redis.port, atEnd)));
  links.forEach((link, i) => {
    link.delayMs = (roundTripsMs[i] as number) / 2;
  });
  // Not the folder that a replica saves its windows in by default: the next one would take them for its own.
  const folder = mkdtempSync(join(tmpdir(), "latchkey-fleet-"));
  atEnd(() => rmSync(folder, { recursive: true, force: true }));
  const own = (i: number) => ({
    REDIS_URL: `redis://127.0.0.1:${links[i]?.port}`,
    LATCHKEY_DATA_DIR: join(folder, String(i)),
    ...environment,
  });
  return { fleet: await Fleet.start(databaseUrl, roundTripsMs.length, own, atEnd), links };
}
