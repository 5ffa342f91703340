import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { Unavailable } from "../../domain/unavailable.ts";
import { limitConcurrency } from "../sql/limit-concurrency.ts";
import type { ListReply, ListRequest, ListSetup } from "./list-protocol.ts";
import { isDamage } from "./result-codes.ts";
import type { Statement } from "./writer-protocol.ts";

const waitingMax = 100;

export interface ListReaderOptions {
  readonly file: string;
  /** The file could not be read properly. */
  readonly onDamage: (cause: unknown) => void;
}

/**
 * The event loop's side of the thread that reads lists. The thread is started by the first list: most processes never
 * need it. If it dies, the list that it was reading fails, and the next one starts another.
 */
export class ListReader {
  readonly #options: ListReaderOptions;
  readonly #inTurn = limitConcurrency(1, waitingMax);
  #thread: Worker | undefined;
  #closed = false;
  /** The statement under way, if there is one. */
  #current: Promise<unknown> | undefined;

  constructor(options: ListReaderOptions) {
    this.#options = options;
  }

  /** The thread that reads, once it is needed. */
  get thread(): Worker | undefined {
    return this.#thread;
  }

  /** Throws `Unavailable`, also if too many statements wait. */
  run(statement: Statement): Promise<readonly unknown[]> {
    return this.#inTurn(async () => {
      if (this.#closed) throw new Unavailable("the store is closed");
      this.#thread ??= this.#start();
      const reply = ask(this.#thread, statement);
      this.#current = reply;
      return this.#rowsOf(await reply);
    });
  }

  /** Statements that still wait are refused. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#current?.catch(() => {});
    const thread = this.#thread;
    if (thread === undefined) return;
    const exited = once(thread, "exit");
    thread.postMessage("close" satisfies ListRequest);
    await exited;
  }

  #start(): Worker {
    const setup: ListSetup = { file: this.#options.file };
    const thread = new Worker(new URL("./list-worker.ts", import.meta.url), { workerData: setup });
    // The statement under way learns of it by itself.
    thread.on("error", () => {});
    thread.once("exit", () => {
      this.#thread = undefined;
    });
    return thread;
  }

  #rowsOf(reply: ListReply): readonly unknown[] {
    if ("rows" in reply) return reply.rows;
    const { resultCode, message } = reply.failed;
    if (isDamage(resultCode)) this.#options.onDamage(new Error(message));
    throw new Unavailable(`the list could not be read: ${message}`);
  }
}

/** At most one statement is under way. */
function ask(thread: Worker, statement: Statement): Promise<ListReply> {
  return new Promise((resolve, reject) => {
    let cause: unknown;
    const onError = (error: unknown) => {
      cause = error;
    };
    const onExit = () => {
      reject(new Unavailable("the thread that reads lists died", { cause }));
    };
    thread.once("message", (reply: ListReply) => {
      thread.off("error", onError).off("exit", onExit);
      resolve(reply);
    });
    thread.once("error", onError).once("exit", onExit);
    thread.postMessage(statement satisfies ListRequest);
  });
}
