import { Unavailable } from "../domain/unavailable.ts";
import { EndOfTurn } from "../link/end-of-turn.ts";
import { PendingCalls } from "../link/pending-calls.ts";
import { fromWire, toWire, type WireError } from "../link/wire-error.ts";

/** The methods that one side offers to the other. Arguments and answers are plain data. */
type Methods = { readonly [Name in string]: (...args: never[]) => unknown };
type Name<Side> = keyof Side & string;
export type Args<Method> = Method extends (...args: infer Given) => unknown ? Given : never;
export type Answer<Method> = Method extends (...args: never[]) => infer Given ? Awaited<Given> : never;

/** The end of a channel between two threads: a Worker, or its parent's port. */
export interface ThreadPort {
  postMessage(message: unknown): void;
}

/** A question. Number 0 gets no answer. */
type Question = readonly [number: number, name: string, args: readonly unknown[]];
type Reply = readonly [number: number, isAnswer: boolean, answer: unknown];

const waitingMax = 200_000;

/**
 * Two threads that call each other's methods. All calls and replies of one turn of the event loop go into one message, in
 * order: a message costs as much as dozens of calls.
 */
export class ThreadLink<Local extends object, Remote extends object> {
  readonly #port: ThreadPort;
  readonly #local: Local;
  readonly #calls = new PendingCalls(waitingMax, "too many wait for another thread");
  readonly #endOfTurn = new EndOfTurn(() => this.#flush());
  #outbox: (Question | Reply)[] = [];

  constructor(port: ThreadPort, local: Local) {
    this.#port = port;
    this.#local = local;
  }

  /** Must be called with every message of the port. */
  onMessage(batch: readonly (Question | Reply)[]): void {
    for (const sent of batch) this.#receive(sent);
  }

  /** Rejects with the other side's error, or with `Unavailable` if too many calls already wait. */
  ask<Asked extends Name<Remote>>(name: Asked, ...args: Args<Remote[Asked]>): Promise<Answer<Remote[Asked]>> {
    return this.#calls.open((number) => this.#send([number, name, args]));
  }

  /** Calls a method without waiting for an answer. */
  notify<Notified extends Name<Remote>>(name: Notified, ...args: Args<Remote[Notified]>): void {
    this.#send([0, name, args]);
  }

  /** The other side is gone: all waiting calls are rejected. */
  onDisconnect(cause: unknown): void {
    this.#calls.rejectAll(new Unavailable("a thread died", { cause }));
  }

  #send(sent: Question | Reply): void {
    this.#outbox.push(sent);
    this.#endOfTurn.schedule();
  }

  #flush(): void {
    const batch = this.#outbox;
    this.#outbox = [];
    this.#port.postMessage(batch);
  }

  #receive([number, nameOrIsAnswer, content]: Question | Reply): void {
    if (typeof nameOrIsAnswer === "string") {
      this.#answer(number, nameOrIsAnswer, content as readonly never[]);
      return;
    }
    if (nameOrIsAnswer) this.#calls.resolve(number, content);
    else this.#calls.reject(number, fromWire(content as WireError));
  }

  #answer(number: number, name: string, args: readonly never[]): void {
    const method = (this.#local as Methods)[name] as Methods[string];
    if (number === 0) {
      method.apply(this.#local, args as never[]);
      return;
    }
    const fail = (error: unknown) => this.#send([number, false, toWire(error)]);
    try {
      const answer = method.apply(this.#local, args as never[]);
      if (answer instanceof Promise) answer.then((value: unknown) => this.#send([number, true, value]), fail);
      else this.#send([number, true, answer]);
    } catch (error) {
      fail(error);
    }
  }
}
