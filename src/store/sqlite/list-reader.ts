import { once } from "node:events";
import type { Worker } from "node:worker_threads";
import { Unavailable } from "../../domain/unavailable.ts";
import { limitConcurrency } from "../sql/limit-concurrency.ts";
import { AskedThread } from "./asked-thread.ts";
import { isDamage } from "./result-codes.ts";
import type { Statement, WriterFailure } from "./writer-protocol.ts";

const waitingMax = 100;

export interface ListReaderOptions {
  readonly file: string;
  /** The file could not be read properly. */
  readonly onDamage: (cause: unknown) => void;
}

export interface ListSetup {
  readonly file: string;
}

export type ListRequest = Statement | "close";

/** One for each statement. */
export type ListReply = { readonly rows: readonly unknown[] } | { readonly failed: WriterFailure };

/**
 * The event loop's side of the thread that reads lists. The thread is started by the first list: most processes never
 * need it. If it dies, the list that it was reading fails, and the next one starts another.
 */
export class ListReader {
  readonly #options: ListReaderOptions;
  readonly #inTurn = limitConcurrency(1, waitingMax);
  #thread: AskedThread<ListRequest, ListReply> | undefined;
  #closed = false;
  /** The statement under way, if there is one. */
  #current: Promise<unknown> | undefined;

  constructor(options: ListReaderOptions) {
    this.#options = options;
  }

  /** The thread that reads, once it is needed. */
  get thread(): Worker | undefined {
    return this.#thread?.worker;
  }

  /** Throws `Unavailable`, also if too many statements wait. */
  run(statement: Statement): Promise<readonly unknown[]> {
    return this.#inTurn(async () => {
      if (this.#closed) throw new Unavailable("the store is closed");
      this.#thread ??= this.#start();
      const reply = this.#thread.request(statement);
      this.#current = reply;
      return this.#rowsOf(await reply);
    });
  }

  /** Statements that still wait are refused. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#current?.catch(() => {});
    const thread = this.#thread?.worker;
    if (thread === undefined) return;
    const exited = once(thread, "exit");
    thread.postMessage("close" satisfies ListRequest);
    await exited;
  }

  #start(): AskedThread<ListRequest, ListReply> {
    const setup: ListSetup = { file: this.#options.file };
    return new AskedThread(new URL("./list-worker.ts", import.meta.url), setup, "thread that reads lists", () => {
      this.#thread = undefined;
    });
  }

  #rowsOf(reply: ListReply): readonly unknown[] {
    if ("rows" in reply) return reply.rows;
    const { resultCode, message } = reply.failed;
    if (isDamage(resultCode)) this.#options.onDamage(new Error(message));
    throw new Unavailable(`the list could not be read: ${message}`);
  }
}
