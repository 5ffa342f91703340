import type { KeysClient } from "../../../src/sdk/index.ts";
import { createSurely, surely } from "../create-surely.ts";
import type { StrictCluster } from "../strict/index.ts";
import { clientOfFront, createSecrets, feedSettles, lookupsOf, verifyDuring, verifyEach } from "./fronts.ts";

export interface RestartFigures {
  readonly remembered: number;
  /** Of each edge: of keys that it had remembered before the restarts. */
  readonly lookups: readonly number[];
  /** Codes of all verifications meanwhile. Every tenth is of a key that was deleted, which has to be looked up. */
  readonly meanwhile: readonly Record<string, number>[];
}

/** Lets each edge remember the keys, does something, and counts how many each looks up again when all are verified. */
export async function countLookupsAfter(
  cluster: StrictCluster,
  edges: readonly number[],
  keys: number,
  act: () => Promise<unknown>,
): Promise<RestartFigures> {
  const fronts = edges.map((edge) => cluster.edge(edge));
  const clients = fronts.map(clientOfFront);
  const [first] = clients as [(typeof clients)[0]];
  const remembered = await createSecrets(first, keys);
  for (const client of clients) await rememberEach(client, remembered);
  // Only what is remembered after the first news counts: before it, nothing is served from memory.
  for (const front of fronts) await feedSettles(front, 1);
  // Is looked up each time, because only keys that exist are remembered.
  const gone = await createSurely(first, { apiId: "api" });
  await surely((repeated) => first.deleteKey({ keyId: gone.keyId }, repeated));
  const before = await Promise.all(fronts.map(lookupsOf));
  const acting = act();
  const meanwhile = await Promise.all(
    clients.map((client) => {
      let at = 0;
      const next = () => (++at % 10 === 0 ? gone.key : (remembered[at % keys] as string));
      return verifyDuring(client, next, () => acting);
    }),
  );
  for (const client of clients) await verifyEach(client, remembered);
  const after = await Promise.all(fronts.map(lookupsOf));
  // A look-up that got no answer counts as one of a remembered key.
  const lookups = after.map((count, i) => count - (before[i] as number) - (meanwhile[i]?.NOT_FOUND ?? 0));
  return { remembered: keys, lookups, meanwhile };
}

/** Verifies each, and again where a busy machine did not answer in time. */
async function rememberEach(client: KeysClient, secrets: readonly string[]): Promise<void> {
  while (((await verifyEach(client, secrets)).VALID ?? 0) < secrets.length);
}

/** Orderly, in turns, each when all edges are connected again. */
export async function restartCoordinators(cluster: StrictCluster, times: number): Promise<void> {
  for (let restart = 0; restart < times; restart++) {
    const index = restart % 2;
    const coordinator = cluster.coordinator(index);
    coordinator.kill("SIGTERM");
    const code = await coordinator.exited;
    if (code !== 0) throw new Error(`the coordinator ended with ${code}`);
    await cluster.replaceCoordinator(index);
    await cluster.untilConnected();
  }
}
