import { Worker } from "node:worker_threads";
import { Unavailable } from "../../domain/unavailable.ts";

/** The event loop's side of a thread that answers one request after the other. */
export class AskedThread<Request, Reply> {
  readonly worker: Worker;
  /** Gets the next reply: at most one request is under way. */
  #awaited: PromiseWithResolvers<Reply> | undefined;

  constructor(program: URL, setup: object, name: string, onExit: (cause: unknown) => void, onReply = () => {}) {
    this.worker = new Worker(program, { workerData: setup });
    let cause: unknown;
    this.worker.on("message", (reply: Reply) => {
      onReply();
      this.#awaited?.resolve(reply);
    });
    this.worker.on("error", (error) => {
      cause = error;
    });
    this.worker.on("exit", (code) => {
      // A request still waiting would wait forever. For an answered one this changes nothing.
      this.#awaited?.reject(new Unavailable(`the ${name} died`, { cause }));
      onExit(cause ?? new Error(`the ${name} exited with ${code}`));
    });
  }

  request(request: Request): Promise<Reply> {
    const reply = this.reply();
    this.worker.postMessage(request);
    return reply;
  }

  /** The next reply: to a request, or the first one, which the thread sends by itself. */
  reply(): Promise<Reply> {
    this.#awaited = Promise.withResolvers<Reply>();
    return this.#awaited.promise;
  }
}
