import { Unavailable } from "../../../src/domain/unavailable.ts";
import type { ChangeFeed, FeedChange, FeedNews, FeedPosition } from "../../../src/store/change-feed.ts";

/** Changes that one read tells one by one: few, so that runs get beyond it. */
const changesReadMax = 10;

interface Transaction {
  readonly id: number;
  /** The key that it changes. */
  readonly keyId: string;
}

interface Commit {
  readonly id: number;
  readonly atMs: number;
  readonly keyId?: string;
  readonly heartbeat?: { readonly reader: string; readonly count: number };
}

/** A database as Postgres is one: transactions commit in any order, and a server that takes over may have lost some. */
export class SimulatedLedger {
  /** In the order of commits. */
  commits: Commit[] = [];
  open: Transaction[] = [];
  tidiedBefore = 0;
  /** Counts failovers. */
  server = 1;
  #nextId = 1;
  #keys = 0;

  get oldestOpen(): number {
    return Math.min(this.#nextId, ...this.open.map(({ id }) => id));
  }

  begin(): void {
    this.open.push({ id: this.#nextId++, keyId: `key ${++this.#keys}` });
  }

  commit(transaction: Transaction, atMs: number): void {
    this.abort(transaction);
    this.commits.push({ ...transaction, atMs });
  }

  abort(transaction: Transaction): void {
    this.open = this.open.filter((other) => other !== transaction);
  }

  /** Answers its transaction. */
  commitHeartbeat(heartbeat: { reader: string; count: number }, atMs: number): number {
    const id = this.#nextId++;
    this.commits.push({ id, heartbeat, atMs });
    return id;
  }

  hasHeartbeat({ reader, count }: { readonly reader: string; readonly count: number }): boolean {
    return this.commits.some(({ heartbeat }) => heartbeat?.reader === reader && heartbeat.count >= count);
  }

  tidy(): void {
    this.tidiedBefore = this.oldestOpen;
  }

  /** Another server takes over, without the last commits. Ids that it has not seen are given out again. */
  failOver(lost: number): void {
    this.commits = this.commits.slice(0, Math.max(0, this.commits.length - lost));
    this.open = [];
    this.#nextId = Math.max(0, ...this.commits.map(({ id }) => id)) + 1;
    this.tidiedBefore = Math.min(this.tidiedBefore, this.#nextId);
    this.server++;
  }
}

interface Beaten {
  readonly reader: string;
  readonly count: number;
  /** The heartbeat's transaction. */
  readonly id: number;
  readonly server: number;
}

export interface PendingRead {
  readonly since: FeedPosition | undefined;
  readonly resolve: (news: FeedNews) => void;
  readonly reject: (error: Error) => void;
  beaten?: Beaten;
  news?: FeedNews;
}

/**
 * One process' reader of the ledger, as `PgChangeFeed`, but for turns: a relay must do with a feed that reads several
 * times at once. Reads go on only when the test lets them.
 */
export class SimulatedFeed implements ChangeFeed {
  static #readers = 0;
  readonly #ledger: SimulatedLedger;
  readonly #nowMs: () => number;
  pending: PendingRead[] = [];
  #reader = "";
  #count = 0;

  constructor(ledger: SimulatedLedger, nowMs: () => number) {
    this.#ledger = ledger;
    this.#nowMs = nowMs;
  }

  read(since: FeedPosition | undefined): Promise<FeedNews> {
    return new Promise((resolve, reject) => this.pending.push({ since, resolve, reject }));
  }

  /** The next step of a read: the heartbeat, the snapshot, and the arrival of the answer. */
  advance(read: PendingRead): void {
    if (read.news !== undefined) {
      this.#end(read);
      read.resolve(read.news);
    } else if (read.beaten === undefined) {
      read.beaten = this.#beat();
    } else if (read.beaten.server === this.#ledger.server) {
      read.news = this.#readAfter(read.beaten, read.since);
    } else {
      this.fail(read);
    }
  }

  fail(read: PendingRead): void {
    this.#end(read);
    read.reject(new Unavailable("away"));
  }

  #end(read: PendingRead): void {
    this.pending = this.pending.filter((other) => other !== read);
  }

  #beat(): Beaten {
    if (this.#count === 0 || !this.#ledger.hasHeartbeat({ reader: this.#reader, count: this.#count })) {
      this.#reader = `reader ${++SimulatedFeed.#readers}`;
      this.#count = 0;
    }
    const heartbeat = { reader: this.#reader, count: ++this.#count };
    return { ...heartbeat, id: this.#ledger.commitHeartbeat(heartbeat, this.#nowMs()), server: this.#ledger.server };
  }

  #readAfter({ id: heartbeatId, reader, count, server }: Beaten, since: FeedPosition | undefined): FeedNews {
    const { commits, oldestOpen, tidiedBefore } = this.#ledger;
    const session = `${reader} on server ${server}`;
    const reported = since?.reported?.session === session ? since.reported.snapshot.split(",") : [];
    const changed = commits.flatMap(({ id, keyId }): FeedChange[] =>
      keyId !== undefined && id >= (since?.transaction ?? 0) && !reported.includes(`${id}`)
        ? [{ kind: "key", keyId, digests: [keyId] }]
        : [],
    );
    const isKnown =
      since?.heartbeat !== undefined &&
      this.#ledger.hasHeartbeat(since.heartbeat) &&
      since.transaction <= oldestOpen &&
      since.transaction >= tidiedBefore &&
      changed.length <= changesReadMax;
    return {
      position: {
        epoch: "epoch",
        transaction: Math.min(oldestOpen, heartbeatId),
        heartbeat: { reader, count },
        reported: { session, snapshot: commits.map(({ id }) => id).join(",") },
      },
      changed: isKnown ? changed : "everything",
      hasImportedKeys: false,
      ageMs: 0,
    };
  }
}
