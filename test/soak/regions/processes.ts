import { builtProgram } from "../../support/artefact.ts";
import { type LatchkeyProcess, startLatchkey } from "../../support/latchkey-process.ts";
import { testRootKey } from "../../support/test-root-key.ts";
import type { Network } from "./network.ts";

/*
 * How Latchkey's processes are configured in the lab: here, and nowhere else. When an edge no longer takes a
 * DATABASE_URL, this is the file that changes.
 */

/** Every edge has this port of its own host. It stays the same over restarts. */
export const edgePort = 8080;
const internalPort = "8081";
const internalSecret = "internal-secret-of-the-lab-0123456789abcdef";
/** At most this long until a process serves. */
const startMs = 30_000;

export interface Place {
  readonly network: Network;
  readonly host: string;
  /** A folder of its own. */
  readonly dataDir: string;
  readonly databaseUrl: string;
}

/** A process of the lab. It may never have served. */
export interface Starting {
  readonly serving: Promise<LatchkeyProcess>;
  stderr(): string;
  kill(): void;
}

export async function startCoordinator(place: Place): Promise<LatchkeyProcess> {
  return served(launchCoordinator(place), place.host);
}

/** Without waiting for it to serve. */
export function launchCoordinator(place: Place): Starting {
  return launch(place, {
    LATCHKEY_ROLE: "coordinator",
    DATABASE_URL: place.databaseUrl,
    LATCHKEY_INTERNAL_HOST: place.network.addressOf(place.host),
    LATCHKEY_INTERNAL_PORT: internalPort,
    LATCHKEY_ROOT_KEY: testRootKey,
  });
}

export async function startEdge(place: Place, coordinators: readonly string[]): Promise<LatchkeyProcess> {
  const addresses = coordinators.map((host) => `${place.network.addressOf(host)}:${internalPort}`);
  const starting = launch(place, {
    LATCHKEY_ROLE: "edge",
    PORT: String(edgePort),
    LATCHKEY_COORDINATORS: addresses.join(","),
  });
  return served(starting, place.host);
}

/** A process of the role `all`. Only for making keys before the edges start. */
export function startKeyMaker(place: Place): Promise<LatchkeyProcess> {
  const environment = { DATABASE_URL: place.databaseUrl, LATCHKEY_ROOT_KEY: testRootKey, LATCHKEY_DRAIN_MS: "0" };
  return served(launch(place, environment), place.host);
}

function launch({ network, host, dataDir }: Place, environment: Record<string, string>): Starting {
  let [kill, stderr] = [() => {}, () => ""];
  const command = network.inside(host, process.execPath, [builtProgram(), "serve"]);
  const common = {
    LATCHKEY_DATA_DIR: dataDir,
    LATCHKEY_INTERNAL_SECRET: internalSecret,
    // The lab's network is its own.
    LATCHKEY_INTERNAL_PRIVATE: "1",
  };
  const serving = startLatchkey({ ...common, ...environment }, command, (undo, log) => {
    [kill, stderr] = [undo, log];
  });
  // Not every caller waits for it.
  serving.catch(() => {});
  return { serving, stderr: () => stderr(), kill: () => kill() };
}

async function served({ serving, stderr, kill }: Starting, host: string): Promise<LatchkeyProcess> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      const last = stderr().trimEnd().split("\n").at(-1);
      reject(new Error(`${host} does not serve ${startMs / 1000} s after its start. Its last log line: ${last}`));
    }, startMs);
  });
  try {
    return await Promise.race([serving, late]);
  } catch (error) {
    kill();
    throw error;
  } finally {
    clearTimeout(timer);
  }
}
