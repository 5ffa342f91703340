import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import type { MaybePromise } from "../../domain/maybe-promise.ts";
import { splitPostgresUrl } from "../../domain/postgres-url.ts";
import { DatabaseRefused, isNoRoom, isStartupSettingRefused, orRefused } from "./pg-error.ts";
import { clientConfig } from "./pg-session.ts";
import { PgSocket } from "./pg-socket.ts";

/** How long a search waits for servers that do not answer. */
const defaultSearchMs = 2000;
/** The pause before a server is asked again that is not the primary: its promotion may be under way. */
const askAgainMs = 250;

/** A connection to one of the servers, from the attempt to connect until it is released. */
export interface TrackedConnection {
  readonly url: string;
  abandon(): void;
  isOpen: boolean;
}

/** A server that must not be used now: a standby, or a primary whose standby has taken over. */
class NotPrimary extends Error {
  override readonly name = "NotPrimary";
}

const replaced = "a primary whose standby has taken over";

/**
 * The servers that DATABASE_URL names, and which of them is the primary: the one that accepts writes, and if several say
 * so, the one on the highest timeline. A standby that takes over begins a new timeline, so a primary that comes back
 * after that is recognised and not used. If there is only one server, it is used as it is, and none of this is asked.
 */
export class PgServers {
  readonly #urls: readonly string[];
  readonly #searchMs: number;
  #primary: string | undefined;
  /** The highest timeline seen; 0 before the first. Servers on a lower one are not used. */
  #timeline = 0;
  #searching: Promise<string> | undefined;
  #isAskingOthers = false;
  readonly #connections = new Set<TrackedConnection>();

  /** `searchMs` replaces how long a search waits, in tests. */
  constructor(url: string, searchMs = defaultSearchMs) {
    this.#urls = splitPostgresUrl(url);
    this.#searchMs = searchMs;
    if (this.#urls.length === 1) this.#primary = this.#urls[0];
  }

  /** The URL to connect to. Throws if there is no primary now. */
  locate(): MaybePromise<string> {
    if (this.#primary !== undefined) return this.#primary;
    this.#searching ??= this.#search().finally(() => {
      this.#searching = undefined;
    });
    return this.#searching;
  }

  /**
   * Called when an attempt to connect begins. `abandon` is called if another server takes over before the connection is
   * released: a lost server does not answer, and waiting for it takes seconds; one that was replaced must not be used.
   */
  track(url: string, abandon: () => void): TrackedConnection {
    const connection = { url, abandon, isOpen: false };
    if (this.#urls.length > 1) this.#connections.add(connection);
    return connection;
  }

  release(connection: TrackedConnection): void {
    this.#connections.delete(connection);
  }

  /** Called when the connection is made. Throws if it does not lead to the primary. */
  async verify(connection: TrackedConnection, client: pg.Client): Promise<void> {
    if (this.#urls.length > 1) this.#onPrimary(connection.url, await this.#timelineOf(client));
    connection.isOpen = true;
  }

  onConnectFailed({ url }: TrackedConnection, error: unknown): void {
    if (this.#urls.length === 1 || this.#primary !== url) return;
    // The server is there: another search would only ask for more connections.
    if (!isNoRoom(error) && !isStartupSettingRefused(error)) this.#primary = undefined;
  }

  /**
   * An open connection was lost, or a statement had no answer in time. Asks the other servers in the background whether
   * one of them has taken over. An old primary without its synchronous standby still answers reads and accepts
   * connections: only its commits hang.
   */
  onConnectionLost(): void {
    if (this.#urls.length === 1 || this.#isAskingOthers) return;
    this.#isAskingOthers = true;
    void this.#askOthers().finally(() => {
      this.#isAskingOthers = false;
    });
  }

  /** Once, and again for as long as attempts to connect to the primary have no result. */
  async #askOthers(): Promise<void> {
    const primary = this.#primary;
    const others = this.#urls.filter((url) => url !== primary);
    const askOne = async (url: string) => {
      const timeline = await this.#ask(url);
      if (timeline > this.#timeline) this.#onPrimary(url, timeline);
    };
    for (;;) {
      await Promise.allSettled(others.map(askOne));
      await delay(askAgainMs, undefined, { ref: false });
      if (this.#primary !== primary || [...this.#connections].every(({ isOpen }) => isOpen)) return;
    }
  }

  #onPrimary(url: string, timeline: number): void {
    if (timeline < this.#timeline) throw new NotPrimary(replaced);
    this.#timeline = timeline;
    this.#primary = url;
    for (const connection of this.#connections) if (connection.url !== url) connection.abandon();
  }

  /**
   * Asks all servers together. Ends when each has answered or failed, because a primary that was replaced can be the first
   * to answer; but a timeline above the known one ends it immediately.
   */
  #search(): Promise<string> {
    const answers = new Map<string, number | Error>();
    return new Promise((resolve, reject) => {
      let isOver = false;
      const decide = (isLate = false) => {
        if (isOver) return;
        const [url, timeline] = bestOf(answers, this.#timeline);
        const hasTakenOver = this.#timeline > 0 && timeline > this.#timeline;
        // Otherwise a background question or a connection that was under way has found it meanwhile.
        const isSearching = this.#primary === undefined;
        if (isSearching && !isLate && !hasTakenOver && answers.size < this.#urls.length) return;
        isOver = true;
        clearTimeout(timer);
        if (isSearching && url !== undefined) this.#onPrimary(url, timeline);
        if (this.#primary === undefined) reject(this.#errorOf(answers));
        else resolve(this.#primary);
      };
      const timer = setTimeout(() => decide(true), this.#searchMs).unref();
      const ask = async (url: string) => {
        for (;;) {
          const answer = await this.#ask(url).catch((error: Error) => error);
          answers.set(url, answer);
          decide();
          if (isOver || typeof answer === "number") return;
          await delay(askAgainMs, undefined, { ref: false });
          if (isOver) return;
        }
      };
      for (const url of this.#urls) void ask(url);
    });
  }

  /** The reasons in the order of DATABASE_URL: an error of one server alone would hide the others. */
  #errorOf(answers: ReadonlyMap<string, number | Error>): Error {
    const given = this.#urls.map((url) => answers.get(url));
    const isRefusal = (answer: unknown) => answer instanceof Error && orRefused(answer) instanceof DatabaseRefused;
    if (given.every(isRefusal)) return given[0] as Error;
    return new Error(`no server is the primary: ${given.map(reasonOf).join(", ")}`);
  }

  /** The server's timeline. Throws if it is not the primary. */
  async #ask(url: string): Promise<number> {
    const socket = new PgSocket({ stepMs: this.#searchMs });
    const client = new pg.Client({ ...clientConfig(url), stream: () => socket });
    // Without a listener its loss would end the process.
    client.on("error", () => {});
    try {
      await client.connect();
      return await this.#timelineOf(client);
    } catch (error) {
      if (!(error instanceof NotPrimary)) socket.abandon();
      throw error;
    } finally {
      client.end().catch(() => {});
    }
  }

  async #timelineOf(client: pg.Client): Promise<number> {
    const { rows } = await client.query<StateRow>(stateText);
    const [{ is_read_only, timeline } = { is_read_only: true, timeline: "0" }] = rows;
    if (is_read_only) throw new NotPrimary("a standby");
    const number = Number.parseInt(timeline, 16);
    if (number < this.#timeline) throw new NotPrimary(replaced);
    return number;
  }
}

interface StateRow {
  readonly is_read_only: boolean;
  /** Hexadecimal. */
  readonly timeline: string;
}

/** The name of a file of the log begins with the timeline. A standby cannot be asked for its current one. */
const stateText = `
SELECT current_setting('transaction_read_only')::boolean AS is_read_only,
  CASE WHEN pg_is_in_recovery() THEN '0' ELSE left(pg_walfile_name(pg_current_wal_lsn()), 8) END AS timeline`;

/** The primary on the highest timeline; none if all are below the known one, which may have risen since they answered. */
function bestOf(
  answers: ReadonlyMap<string, number | Error>,
  knownTimeline: number,
): [url: string | undefined, timeline: number] {
  let best: [string | undefined, number] = [undefined, knownTimeline - 1];
  for (const [url, answer] of answers) if (typeof answer === "number" && answer > best[1]) best = [url, answer];
  return best;
}

/** Never with a part of the URL. */
function reasonOf(answer: number | Error | undefined): string {
  if (answer === undefined) return "no answer";
  if (typeof answer === "number") return replaced;
  const { code } = answer as { code?: string };
  return code ?? answer.message;
}
