import type { Answer, Call, Kind, Operation } from "./operations.ts";
import { RandomOperations } from "./random-operations.ts";

/** Something that carries out operations: the real service, or a simulated one. */
export interface Service {
  readonly replicas: number;
  /** The kinds of operations that it knows. */
  readonly kinds: readonly Kind[];
  /** Monotonic. */
  nowMs(): number;
  /** The clock by which keys expire. */
  clockMs(): number;
  call(request: ServiceCall, onAnswer: (answer: Answer) => void): void;
}

export interface ServiceCall {
  readonly caller: number;
  readonly replica: number;
  readonly operation: Operation;
  readonly leaveAfterMs?: number;
}

export interface RunOptions {
  readonly seed: number;
  readonly callers: number;
  readonly operations: number;
  /** The id of the root key that a caller presents. */
  actorOf(caller: number): string;
}

/** Makes calls and keeps a record of each. */
export class RunRecorder {
  readonly calls: Call[] = [];
  readonly #service: Service;
  readonly #actorOf: RunOptions["actorOf"];

  constructor(service: Service, actorOf: RunOptions["actorOf"]) {
    this.#service = service;
    this.#actorOf = actorOf;
  }

  /** With a call back instead of a promise: in virtual time nothing may happen between an answer and what follows it. */
  begin(caller: number, next: Omit<ServiceCall, "caller">, onAnswer: (call: Call) => void): void {
    const service = this.#service;
    const number = ++this.#begun;
    const { operation, replica } = next;
    const [startMs, startClockMs] = [service.nowMs(), service.clockMs()];
    service.call({ caller, ...next }, (answer) => {
      const isKnown = answer.status !== "unknown";
      const [endMs, endClockMs] = isKnown ? [service.nowMs(), service.clockMs()] : [Infinity, Infinity];
      const times = { startMs, endMs, startClockMs, endClockMs };
      const call = { number, caller, replica, actor: this.#actorOf(caller), operation, answer, ...times } as Call;
      this.calls.push(call);
      onAnswer(call);
    });
  }

  readonly make = (caller: number, next: Omit<ServiceCall, "caller">): Promise<Call> =>
    new Promise((resolve) => this.begin(caller, next, resolve));

  #begun = 0;

  get begun(): number {
    return this.#begun;
  }
}

/**
 * Has callers make random operations, each one after the other, until there have been so many. At the end all keys are
 * read once more, when nothing else is under way. Answers every call that was made.
 */
export function runCallers(service: Service, options: RunOptions, onEnd: (calls: readonly Call[]) => void): void {
  const { seed, callers, operations, actorOf } = options;
  const { replicas, kinds } = service;
  const random = new RandomOperations({ seed, replicas, kinds, nowMs: () => service.clockMs() });
  const recorder = new RunRecorder(service, actorOf);
  let active = callers;
  for (let caller = 0; caller < callers; caller++) goOn(caller);

  function goOn(caller: number): void {
    if (recorder.begun < operations) make(caller, random.next(), () => goOn(caller));
    else if (--active === 0) readAll();
  }

  function readAll(): void {
    const last: Operation[] = random.everyKeyId.map((keyId) => ({ kind: "getKey", keyId }));
    if (kinds.includes("listKeys")) last.push({ kind: "listKeys" });
    const next = () => {
      const operation = last.pop();
      if (operation === undefined) onEnd(recorder.calls);
      else make(0, { operation, replica: last.length % replicas }, next);
    };
    next();
  }

  function make(caller: number, next: Omit<ServiceCall, "caller">, then: () => void): void {
    recorder.begin(caller, next, (call) => {
      random.learn(call);
      then();
    });
  }
}
