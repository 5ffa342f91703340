import type { Mistake } from "./mistakes.ts";
import type { Answer, FieldChanges, History, KeyFields, Kind, LoggedEvent, Operation, ReadKey } from "./operations.ts";
import { type RunOptions, runCallers, type Service, type ServiceCall } from "./run-callers.ts";
import { type Replica, type Row, type SimulatedSecret, SimulatedVerifications } from "./simulated-verifications.ts";

const kinds: readonly Kind[] = [
  "createKey",
  "importKeys",
  "verifyKey",
  "getKey",
  "listKeys",
  "updateKey",
  "updateRemaining",
  "rerollKey",
  "deleteKey",
];

/** A correct replica hears of changes before this. */
const newsMaxMs = 950;

/** A run of the simulated service in virtual time: the same for the same seed, in a few milliseconds. */
export function simulate(options: { seed: number; operations: number; mistake?: Mistake }): History {
  const service = new SimulatedService(options.seed, options.mistake);
  const run: RunOptions = { ...options, callers: 16, actorOf: (caller) => actors[caller % actors.length] as string };
  let history: History | undefined;
  runCallers(service, run, (calls) => {
    const { events } = service;
    history = { calls, events, localWindowsAreShared: false, standstillMs: () => 0 };
  });
  service.runToEnd();
  if (history === undefined) throw new Error("the simulated run did not end");
  return history;
}

const actors = ["root-1", "root-2"];

class SimulatedService extends SimulatedVerifications implements Service {
  readonly replicas = 3;
  readonly kinds = kinds;
  readonly events: LoggedEvent[] = [];
  call(request: ServiceCall, onAnswer: (answer: Answer) => void): void {
    let isOver = false;
    const answer = (given: Answer) => {
      if (isOver) return;
      isOver = true;
      onAnswer(given);
    };
    if (request.leaveAfterMs !== undefined)
      this.after(request.leaveAfterMs, () => answer({ status: "unknown", cause: "left" }));
    const reply = (given: Answer) => this.after(this.path(), () => answer(given));
    this.after(this.path(), () => this.serve(request, reply));
  }

  protected serve({ replica, operation, caller }: ServiceCall, reply: (answer: Answer) => void): void {
    const here = this.fronts[replica] as Replica;
    switch (operation.kind) {
      case "verifyKey":
        this.verify(here, operation, reply);
        break;
      case "getKey": {
        const isStale = this.mistake === "staleRead" && here.cache.get(operation.keyId);
        const row = isStale || this.rows.get(operation.keyId);
        reply(row ? { status: "done", body: this.read(row) } : notFound);
        break;
      }
      case "listKeys": {
        const leftOut = this.mistake === "listMisses" ? [...this.rows.keys()].at(-1) : undefined;
        const rows = [...this.rows.values()].filter(({ keyId, version }) => keyId !== leftOut || version > 3);
        reply({ status: "done", body: { keys: rows.map((row) => this.read(row)) } });
        break;
      }
      default: {
        const asRead = "keyId" in operation ? this.rows.get(operation.keyId) : undefined;
        const balanceAsRead = asRead && this.balances.get(asRead.keyId);
        this.after(this.path(), () => reply(this.change(replica, operation, caller, asRead, balanceAsRead)));
      }
    }
  }

  // Changes.

  protected change(
    replica: number,
    operation: Operation,
    caller: number,
    asRead?: Row,
    balanceAsRead?: number,
  ): Answer {
    if (operation.kind === "createKey" || operation.kind === "importKeys") return this.create(operation, caller);
    if (!("keyId" in operation)) throw new Error(`not a change: ${operation.kind}`);
    const row = this.rows.get(operation.keyId);
    if (row === undefined) {
      const isDeletedAgain = this.mistake === "deletedTwice" && operation.kind === "deleteKey" && asRead !== undefined;
      return isDeletedAgain ? { status: "done", body: {} } : notFound;
    }
    const next = { ...row, version: row.version + 1 };
    switch (operation.kind) {
      case "updateKey": {
        const { ifVersion, changes } = operation;
        const compared = this.mistake === "twoByOneVersion" ? (asRead ?? row) : row;
        if (ifVersion !== undefined && compared.version !== ifVersion && this.mistake !== "ifVersionIgnored") {
          if (this.mistake === "eventOfRefused") this.log(next, operation, caller);
          return { status: "conflict" };
        }
        const before = this.mistake === "lostUpdate" ? (asRead ?? row) : row;
        const made = { ...next, fields: this.apply(before.fields, changes) };
        if (this.mistake === "windowAnew" && changes.ratelimit) this.windows.delete(`${row.keyId} false`);
        if (this.mistake === "oldPermits") this.keepLimit(row);
        this.commit(replica, made, operation, caller);
        return { status: "done", body: this.read(made) };
      }
      case "updateRemaining":
        return this.updateRemaining(replica, next, operation, caller, balanceAsRead);
      case "rerollKey": {
        const key = `secret-${++this.made}`;
        const overlap = this.mistake === "secretLivesOn" ? Infinity : operation.overlap;
        const last = row.secrets.at(-1) as SimulatedSecret;
        const secrets = [
          { ...last, endsAtMs: this.atMs + overlap },
          { text: key, endsAtMs: Infinity },
        ];
        const balance = this.balances.get(row.keyId);
        if (this.mistake === "ownBalance" && balance !== undefined) this.balances.set(key, balance);
        this.commit(replica, { ...next, secrets }, operation, caller);
        return { status: "done", body: { keyId: row.keyId, key } };
      }
      case "deleteKey":
        this.commit(replica, next, operation, caller);
        this.rows.delete(row.keyId);
        this.balances.delete(row.keyId);
        return { status: "done", body: {} };
      default:
        throw new Error(`not a change: ${operation.kind}`);
    }
  }

  protected create(operation: Extract<Operation, { kind: "createKey" | "importKeys" }>, caller: number): Answer {
    const { fields, remaining } = operation;
    const keyId = `key-${++this.made}`;
    const key = operation.kind === "importKeys" ? operation.secret : `secret-${++this.made}`;
    const secrets = [{ text: key, endsAtMs: Infinity }];
    const row = { keyId, version: 1, fields, hasCounter: remaining !== undefined, secrets };
    this.rows.set(keyId, row);
    if (remaining !== undefined) this.balances.set(keyId, remaining);
    this.log(row, operation, caller);
    return { status: "done", body: operation.kind === "importKeys" ? { keyId } : { keyId, key } };
  }

  private keepLimit({ keyId, fields }: Row): void {
    const window = this.windows.get(`${keyId} false`);
    if (window && fields.ratelimit) window.before = { limit: fields.ratelimit.limit, untilMs: this.atMs + 300 };
  }

  protected updateRemaining(
    replica: number,
    next: Row,
    operation: Extract<Operation, { kind: "updateRemaining" }>,
    caller: number,
    balanceAsRead: number | undefined,
  ): Answer {
    const { op, value } = operation;
    const balance = this.balances.get(next.keyId);
    const from = this.mistake === "decrementsByHalves" && op === "decrement" ? balanceAsRead : balance;
    const after =
      op === "set" ? value : from === undefined ? undefined : from + (op === "increment" ? 1 : -1) * (value ?? 0);
    if (after === undefined || (after !== null && after < 0)) {
      if (this.mistake === "refusedDecrement" && balance !== undefined) this.balances.set(next.keyId, 0);
      return { status: "conflict" };
    }
    if (after === null) this.balances.delete(next.keyId);
    else this.balances.set(next.keyId, after);
    this.commit(replica, { ...next, hasCounter: after !== null }, operation, caller);
    return { status: "done", body: after === null ? {} : { remaining: after } };
  }

  protected apply(before: KeyFields, changes: FieldChanges): KeyFields {
    const after: Record<string, unknown> = { ...before };
    for (const [name, value] of Object.entries(changes)) {
      if (value === null) delete after[name];
      else after[name] = name === "expires" ? Math.max(value as number, this.atMs) : value;
    }
    return after as unknown as KeyFields;
  }

  /** Stores the row with its event, and tells the replicas. */
  protected commit(replica: number, row: Row, operation: Operation, caller: number): void {
    this.rows.set(row.keyId, row);
    this.log(row, operation, caller);
    for (const [index, each] of this.fronts.entries()) {
      const forget = () => this.forget(each, row, operation, index === replica);
      if (index === replica) this.mistake === "staleHere" ? this.after(150, forget) : forget();
      else if (this.mistake === "staleElsewhere" && index === 2) this.after(3000, forget);
      else this.after(this.random.integer(0, newsMaxMs), forget);
    }
  }

  protected forget(replica: Replica, row: Row, operation: Operation, isHere: boolean): void {
    const cached = replica.cache.get(row.keyId);
    if (this.mistake === "localForgotten") replica.windows.delete(`${row.keyId} true`);
    if (cached === undefined || cached.version >= row.version) return;
    if (!isHere) {
      if (this.mistake === "deletedVerifies" && operation.kind === "deleteKey") return;
      if (this.mistake === "counterIgnored" && row.hasCounter && !cached.hasCounter) return;
      const kept = this.mistake === "halfUpdate" && { name: cached.fields.name };
      const enabled = this.mistake === "enabledIgnored" && { enabled: cached.fields.enabled };
      if (kept || enabled) {
        const mixed = JSON.parse(JSON.stringify({ ...row.fields, ...kept, ...enabled }));
        replica.cache.set(row.keyId, { ...row, fields: mixed });
        return;
      }
    }
    replica.cache.delete(row.keyId);
  }

  protected log({ keyId, version }: Row, operation: Operation, caller: number): void {
    const isWrong = this.random.chance(0.02);
    if (this.mistake === "eventMissing" && isWrong) return;
    const id = `evt-${++this.made}`;
    const fields = operation.kind === "updateKey" ? Object.keys(operation.changes) : [];
    const who = actors[(caller + (this.mistake === "wrongActor" && isWrong ? 1 : 0)) % actors.length] as string;
    const event = {
      id,
      atMs: this.atMs,
      method: `keys.${operation.kind}`,
      actor: who,
      targetId: keyId,
      fields,
      version,
    };
    this.events.push(event);
    if (this.mistake === "eventTwice" && isWrong) this.events.push({ ...event, id: `${id}-again` });
  }

  protected read(row: Row): ReadKey {
    const remaining = this.balances.get(row.keyId);
    return { keyId: row.keyId, version: row.version, ...row.fields, ...(remaining !== undefined && { remaining }) };
  }
}

const notFound: Answer = { status: "notFound" };
