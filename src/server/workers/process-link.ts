import type { ChildProcess, SendHandle } from "node:child_process";
import { Unavailable } from "../../domain/unavailable.ts";
import { PendingCalls } from "../../link/pending-calls.ts";

/** The methods that one process offers to the other. Arguments and answers are plain data. */
type Methods = { readonly [Name in string]: (...args: never[]) => unknown };
type Args<Method> = Method extends (...args: infer Given) => unknown ? Given : never;
type Answer<Method> = Method extends (...args: never[]) => infer Given ? Awaited<Given> : never;

type Message =
  | { readonly call: number; readonly name: string; readonly args: readonly unknown[] }
  | { readonly answerTo: number; readonly answer?: unknown; readonly error?: string };

/** A worker, as its main process sees it; or the main process, as a worker sees it. */
export type Peer = Pick<ChildProcess | NodeJS.Process, "on" | "connected" | "send">;

const callsMax = 100_000;

/** Two processes that call each other's methods, over the channel that Node has opened between them. */
export class ProcessLink<Local extends object, Remote extends object> {
  readonly #peer: Peer;
  readonly #local: Local;
  readonly #calls = new PendingCalls(callsMax, "too many calls wait for another process");

  constructor(peer: Peer, local: Local) {
    this.#peer = peer;
    this.#local = local;
    peer.on("message", (message: Message, handle: unknown) => void this.#receive(message, handle));
  }

  /** The other process has ended: calls without an answer are rejected. */
  end(): void {
    this.#calls.rejectAll(gone());
  }

  /** Rejects if the other side fails, or with `Unavailable` if it has gone. */
  ask<Name extends keyof Remote & string>(name: Name, ...args: Args<Remote[Name]>): Promise<Answer<Remote[Name]>> {
    return this.askWith(undefined, name, ...args);
  }

  /** With a handle, which the method gets as its last argument. */
  askWith<Name extends keyof Remote & string>(
    handle: SendHandle | undefined,
    name: Name,
    ...args: unknown[]
  ): Promise<Answer<Remote[Name]>> {
    if (!this.#peer.connected) return Promise.reject(gone());
    return this.#calls.open((call) => this.#send({ call, name, args }, handle));
  }

  #send(message: Message, handle?: SendHandle): void {
    // A failure means that the other process has gone. Then its calls are rejected.
    this.#peer.send?.(message, handle, undefined, () => {});
  }

  async #receive(message: Message, handle: unknown): Promise<void> {
    if ("answerTo" in message) {
      const { answerTo, answer, error } = message;
      if (error === undefined) this.#calls.resolve(answerTo, answer);
      else this.#calls.reject(answerTo, new Error(error));
      return;
    }
    const { call, name, args } = message;
    const method = (this.#local as Methods)[name] as (...args: readonly unknown[]) => unknown;
    try {
      const answer = await method.call(this.#local, ...args, handle);
      this.#answer({ answerTo: call, answer });
    } catch (error) {
      this.#answer({ answerTo: call, error: (error as Error).message });
    }
  }

  #answer(message: Message): void {
    if (this.#peer.connected) this.#send(message);
  }
}

function gone(): Unavailable {
  return new Unavailable("a process of this service has ended");
}
