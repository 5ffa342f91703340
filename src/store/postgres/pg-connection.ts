import pg from "pg";
import { sha256 } from "../../ambient/crypto.ts";
import { isStatementElsewhere, isUnconfirmedCommit } from "./pg-error.ts";
import { clientConfig, StartupSettings } from "./pg-session.ts";
import { withTimeout } from "./with-timeout.ts";

export interface PreparedText {
  /** Prepared under this name, once per connection. */
  readonly name: string;
  readonly text: string;
}

export interface PgStatement extends PreparedText {
  readonly values: readonly unknown[];
}

/**
 * The name is derived from the text. Behind a pooler another client may already have prepared the same name, and then it
 * must mean the same text, whatever version of this service that client runs.
 */
export function preparedText(text: string): PreparedText {
  return { name: `latchkey_${sha256(text).slice(0, 16)}`, text };
}

export interface PgReply {
  readonly rows: readonly Record<string, unknown>[];
  /** The server committed but stopped waiting for its synchronous standby: the commit may still be lost. */
  readonly doubtful: boolean;
}

/** How long connecting may take; longer than any caller waits. */
const defaultConnectMs = 1000;

/**
 * One connection, opened when needed and discarded on any problem. One statement at a time. Connecting continues after
 * the caller has given up: otherwise, on a slow link, every caller would start again and none would ever be connected.
 */
export class PgConnection {
  readonly #url: string;
  readonly #connectMs: number;
  readonly #startup = new StartupSettings();
  /** Whether prepared statements stay available. Not behind a pooler that pools by transaction. */
  #keepsPrepared = true;
  #client: pg.Client | undefined;
  #connecting: Promise<void> | undefined;
  #closed = false;
  #doubtful = false;

  constructor(url: string, connectMs = defaultConnectMs) {
    this.#url = url;
    this.#connectMs = connectMs;
  }

  get isReady(): boolean {
    return this.#client !== undefined;
  }

  /** Resolves when there is a connection; throws if there is none in time. */
  async ready(timeoutMs: number = this.#connectMs): Promise<void> {
    if (this.#client !== undefined) return;
    if (this.#connecting === undefined) {
      this.#connecting = this.#connect().finally(() => {
        this.#connecting = undefined;
      });
    }
    await withTimeout(this.#connecting, timeoutMs, "no connection in time");
  }

  /** Throws the error of the server or the connection. After a timeout the statement may still be running. */
  async run(statement: PgStatement, timeoutMs: number): Promise<PgReply> {
    await this.ready(timeoutMs);
    if (!this.#keepsPrepared) return this.#run(statement, timeoutMs);
    try {
      return await this.#run(statement, timeoutMs);
    } catch (error) {
      if (!isStatementElsewhere(error)) throw error;
      // It failed before it began. From now on the whole text is sent each time, and the server plans it each time.
      this.#keepsPrepared = false;
      return this.#run(statement, timeoutMs);
    }
  }

  /** Cuts the connection. What it had under way may or may not happen. */
  discard(): void {
    const client = this.#client;
    this.#client = undefined;
    if (client !== undefined) cut(client);
  }

  close(): void {
    this.#closed = true;
    this.discard();
  }

  async #run({ name, text, values }: PgStatement, timeoutMs: number): Promise<PgReply> {
    if (this.#client === undefined) throw new Error("the connection was lost");
    this.#doubtful = false;
    const query = this.#client.query({ ...(this.#keepsPrepared && { name }), text, values: [...values] });
    const { rows } = await withTimeout(query, timeoutMs, "no reply in time");
    return { rows, doubtful: this.#doubtful };
  }

  async #connect(): Promise<void> {
    try {
      await this.#connectOnce();
    } catch (error) {
      if (!this.#startup.wereRefused(error)) throw error;
      await this.#connectOnce();
    }
  }

  async #connectOnce(): Promise<void> {
    const { options } = this.#startup;
    const client = new pg.Client({ ...clientConfig(this.#url, this.#connectMs), ...(options && { options }) });
    // Without a listener the loss of an idle connection would end the process.
    client.on("error", () => {
      if (this.#client === client) this.discard();
    });
    client.on("notice", (notice) => {
      if (isUnconfirmedCommit(notice)) this.#doubtful = true;
    });
    try {
      await client.connect();
      if (this.#closed) throw new Error("closed meanwhile");
      this.#client = client;
    } catch (error) {
      cut(client);
      throw error;
    }
  }
}

/** Not only `end()`, which waits for the statement under way: a connection that hangs would block us. */
function cut(client: pg.Client): void {
  client.end().catch(() => {});
  (client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();
}
