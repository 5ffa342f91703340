import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import type { KeysClient } from "../../../src/sdk/index.ts";
import { settles } from "../settles.ts";
import type { StandbyPair } from "../standby-pair.ts";
import type { StrictCluster } from "../strict/index.ts";
import { atTestEnd } from "../test-end.ts";
import { clientOfFront, codeOf, createSecrets, feedSettles, lookupsOf, verifyEach } from "./fronts.ts";

export interface HeldFigures {
  /** After its commit, until each edge refused the key. */
  readonly refusedMs: readonly number[];
  /** Codes of the key while its deletion was held. */
  readonly whileHeld: readonly string[];
  /** How long it took until the other edge refused keys that were deleted later, while the deletion was held. */
  readonly laterMs: readonly number[];
  /** Whether the control has seen the deletion: a reader that reads above the highest number that it has seen. */
  readonly seenBySequence: boolean;
  /** Later deletions that the control has not seen. */
  readonly laterMissedBySequence: number;
  /** Look-ups of keys that did not change, on the second edge. */
  readonly lookups: number;
}

/** However busy the machine is. */
const settledMs = 60_000;
const unchanged = 200;

/**
 * The standby holds the commit of a deletion, by hand and with `remote_apply`, while its replay is paused. The heartbeats
 * of the feed and later deletions wait only until the standby has them on its disk, so they go on: positions are read
 * beyond them. Meanwhile each coordinator is killed once, so that every edge moves to another.
 */
export async function holdDeletion(pair: StandbyPair, cluster: StrictCluster, holdMs: number): Promise<HeldFigures> {
  const edges = [cluster.edge(0), cluster.edge(1)] as const;
  const clients = edges.map(clientOfFront) as [KeysClient, KeysClient];
  const [here, there] = clients;
  const held = await here.createKey({ apiId: "api" });
  const others = await createSecrets(here, unchanged);
  for (const client of clients) await verifyEach(client, [...others, held.key]);
  for (const edge of edges) await feedSettles(edge, 1);
  const before = await lookupsOf(edges[1]);
  const sequence = new SequenceReader(pair);
  await sequence.read();

  await pair.standby.query("SELECT pg_wal_replay_pause()");
  const committed = await deleteByHand(pair, held.keyId);
  await settles(() => waitingCommits(pair), 1, settledMs);
  const laterMs: number[] = [];
  const laterIds: string[] = [];
  const untilMs = performance.now() + holdMs;
  const deleteLater = async () => {
    const later = (await untilKnown(() => here.createKey({ apiId: "api" }))) as Awaited<
      ReturnType<KeysClient["createKey"]>
    >;
    await codeOf(there, later.key);
    await untilKnown(() => here.deleteKey({ keyId: later.keyId }));
    laterIds.push(later.keyId);
    laterMs.push(await settles(() => codeOf(there, later.key), "NOT_FOUND", settledMs));
    await sequence.read();
  };
  for (const index of [0, 1]) {
    await deleteLater();
    cluster.coordinator(index).kill("SIGKILL");
    await deleteLater();
    await cluster.replaceCoordinator(index);
    await cluster.untilConnected();
  }
  while (performance.now() < untilMs) {
    await deleteLater();
    await delay(Math.min(1000, Math.max(0, untilMs - performance.now())));
  }
  const whileHeld = await Promise.all(clients.map((client) => codeOf(client, held.key)));

  await pair.standby.query("SELECT pg_wal_replay_resume()");
  await committed();
  const refusedMs = await Promise.all(
    clients.map((client) => settles(() => codeOf(client, held.key), "NOT_FOUND", settledMs)),
  );
  await verifyEach(there, others);
  // Each later key was looked up twice: before its deletion and after it. So was the held one, after it.
  const lookups = (await lookupsOf(edges[1])) - before - 2 * laterIds.length - 1;
  await sequence.read();
  return {
    refusedMs,
    whileHeld,
    laterMs,
    seenBySequence: sequence.keyIds.has(held.keyId),
    laterMissedBySequence: laterIds.filter((keyId) => !sequence.keyIds.has(keyId)).length,
    lookups,
  };
}

/** A call that a killed coordinator had under way has an unknown outcome: it is made again. */
async function untilKnown<Answer>(call: () => Promise<Answer>): Promise<Answer | undefined> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      const { code } = error as { readonly code?: string };
      if (code === "NOT_FOUND") return undefined;
      if (code !== "SERVICE_UNAVAILABLE") throw error;
    }
  }
}

/** As the store does it, but it waits until the standby has applied it. Answers how to wait for its commit. */
async function deleteByHand({ primary }: StandbyPair, keyId: string): Promise<() => Promise<void>> {
  const client = new pg.Client(primary.url());
  client.on("error", () => {});
  await client.connect();
  atTestEnd(() => client.end());
  await client.query("BEGIN; SET LOCAL synchronous_commit = remote_apply");
  const row = "SELECT 'key', id, digest FROM keys WHERE id = $1";
  await client.query(`INSERT INTO changes (kind, target_id, digests) ${row}`, [keyId]);
  await client.query("DELETE FROM keys WHERE id = $1", [keyId]);
  const committed = client.query("COMMIT");
  // A test that fails before does not wait for it.
  committed.catch(() => {});
  return async () => void (await committed);
}

/** Commits that wait for the standby. */
export async function waitingCommits({ primary }: StandbyPair): Promise<number> {
  const text = "SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query = 'COMMIT'";
  return (await primary.query(text)).rows.length;
}

/** A reader as one would write it first: it remembers the highest number that it has seen, and reads what lies above. */
class SequenceReader {
  readonly keyIds = new Set<string>();
  readonly #pair: StandbyPair;
  #highest = 0;

  constructor(pair: StandbyPair) {
    this.#pair = pair;
  }

  async read(): Promise<void> {
    const text = `SELECT transaction_id::int AS id, target_id FROM changes WHERE transaction_id > ${this.#highest}`;
    for (const { id, target_id } of (await this.#pair.primary.query(text)).rows as {
      id: number;
      target_id: string;
    }[]) {
      this.#highest = Math.max(this.#highest, id);
      this.keyIds.add(target_id);
    }
  }
}
