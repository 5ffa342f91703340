import { SeededRandom } from "../domain/seeded-random.ts";
import type {
  Answer,
  FieldChanges,
  History,
  KeyFields,
  Kind,
  LoggedEvent,
  Operation,
  ReadKey,
  Verification,
} from "./operations.ts";
import { type RunOptions, runCallers, type Service, type ServiceCall } from "./run-callers.ts";

/** Mistakes that the simulated service can make, one at a time, with the rule that they break. */
export const mistakes = {
  staleElsewhere: ["fields", "one replica hears of changes after three seconds"],
  staleHere: ["fields", "the replica that made a change goes by it a moment after its answer"],
  lostUpdate: ["versions", "an update writes all fields as it read them when it came in"],
  twoByOneVersion: ["ifVersion", "ifVersion is compared when the update comes in, not when it is made"],
  ifVersionIgnored: ["ifVersion", "ifVersion is not compared"],
  halfUpdate: ["fields", "another replica takes over all of an update but its name"],
  enabledIgnored: ["fields", "whether a key is enabled is gone by as it was when it was first cached"],
  expiryIgnored: ["fields", "a cached key does not expire"],
  chargedTwice: ["balances", "some uses are charged twice"],
  notCharged: ["balances", "some uses are answered and not charged"],
  usesSettledLate: ["balances", "uses are charged after their answer, so that a set can come in between"],
  decrementsByHalves: ["balances", "a decrement is made of the balance as it was when it came in"],
  refusedDecrement: ["balances", "a decrement that is refused is made all the same"],
  counterIgnored: ["fields", "a replica does not hear that a key got a counter"],
  overLimit: ["windows", "a strict window lets one too many pass"],
  strictPerReplica: ["windows", "strict windows are counted on each replica"],
  windowAnew: ["windows", "a strict window begins anew when its limit changes"],
  localForgotten: ["windows", "a local window is forgotten when its key changes"],
  localOverLimit: ["windows", "a local window lets one too many pass"],
  refusalTakes: ["windows", "a use that is refused keeps its place in the window"],
  deletedVerifies: ["fields", "other replicas do not hear of a deletion"],
  deletedTwice: ["balances", "a key is deleted by two calls"],
  staleRead: ["versions", "keys are read from the replica's cache"],
  listMisses: ["lists", "a list leaves out a key that has just been changed"],
  eventMissing: ["events", "some changes have no event"],
  eventTwice: ["events", "some changes have two events"],
  eventOfRefused: ["events", "an update that is refused has an event"],
  wrongActor: ["events", "some events name another root key"],
  ownBalance: ["balances", "a secret that replaces another has a balance of its own"],
  secretLivesOn: ["fields", "a secret that was replaced does not end"],
} as const;

export type Mistake = keyof typeof mistakes;

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

interface SimulatedSecret {
  readonly text: string;
  readonly endsAtMs: number;
}

/** As the store and the caches have it. Never changed: replaced. */
interface Row {
  readonly keyId: string;
  readonly version: number;
  readonly fields: KeyFields;
  readonly hasCounter: boolean;
  readonly secrets: readonly SimulatedSecret[];
}

interface Window {
  endsAtMs: number;
  count: number;
}

class Replica {
  readonly cache = new Map<string, Row>();
  readonly windows = new Map<string, Window>();
}

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

class SimulatedService implements Service {
  readonly replicas = 3;
  readonly kinds = kinds;
  readonly events: LoggedEvent[] = [];
  readonly #random: SeededRandom;
  readonly #mistake: Mistake | undefined;
  readonly #replicas = [new Replica(), new Replica(), new Replica()];
  readonly #rows = new Map<string, Row>();
  /** Of a key; with the mistake, of a secret. */
  readonly #balances = new Map<string, number>();
  readonly #windows = new Map<string, Window>();
  readonly #due: { atMs: number; order: number; step: () => void }[] = [];
  #nowMs = 1_000_000;
  #made = 0;

  constructor(seed: number, mistake: Mistake | undefined) {
    this.#random = new SeededRandom(seed ^ 0x5eed);
    this.#mistake = mistake;
  }

  nowMs(): number {
    return this.#nowMs;
  }

  clockMs(): number {
    return this.#nowMs;
  }

  runToEnd(): void {
    for (let due = this.#due.shift(); due !== undefined; due = this.#due.shift()) {
      this.#nowMs = due.atMs;
      due.step();
    }
  }

  call(request: ServiceCall, onAnswer: (answer: Answer) => void): void {
    let isOver = false;
    const answer = (given: Answer) => {
      if (isOver) return;
      isOver = true;
      onAnswer(given);
    };
    if (request.leaveAfterMs !== undefined)
      this.#after(request.leaveAfterMs, () => answer({ status: "unknown", cause: "left" }));
    const reply = (given: Answer) => this.#after(this.#path(), () => answer(given));
    this.#after(this.#path(), () => this.#serve(request, reply));
  }

  #serve({ replica, operation, caller }: ServiceCall, reply: (answer: Answer) => void): void {
    const here = this.#replicas[replica] as Replica;
    switch (operation.kind) {
      case "verifyKey":
        this.#verify(here, operation, reply);
        break;
      case "getKey": {
        const isStale = this.#mistake === "staleRead" && here.cache.get(operation.keyId);
        const row = isStale || this.#rows.get(operation.keyId);
        reply(row ? { status: "done", body: this.#read(row) } : notFound);
        break;
      }
      case "listKeys": {
        const leftOut = this.#mistake === "listMisses" ? [...this.#rows.keys()].at(-1) : undefined;
        const rows = [...this.#rows.values()].filter(({ keyId, version }) => keyId !== leftOut || version > 3);
        reply({ status: "done", body: { keys: rows.map((row) => this.#read(row)) } });
        break;
      }
      default: {
        const asRead = "keyId" in operation ? this.#rows.get(operation.keyId) : undefined;
        const balanceAsRead = asRead && this.#balances.get(asRead.keyId);
        this.#after(this.#path(), () => reply(this.#change(replica, operation, caller, asRead, balanceAsRead)));
      }
    }
  }

  // Verifications.

  #verify(here: Replica, request: Verify, reply: (answer: Answer) => void, isFresh = false): void {
    const plan = this.#plan(here, request, isFresh);
    if (plan.next === "answer") reply(plan.answer);
    else if (plan.next === "lookAgain") this.#verify(here, request, reply, true);
    else {
      this.#after(this.#path(), () => {
        const left = this.#spend(plan.row.keyId, request.secret);
        const isOpen = plan.window?.endsAtMs === plan.endsAtMs;
        const isReleased = isOpen && (left === undefined || left < 0) && this.#mistake !== "refusalTakes";
        if (plan.window && isReleased) plan.window.count--;
        if (left === undefined) this.#verify(here, request, reply, true);
        else if (left < 0) reply(answerOf(plan.row, "USAGE_EXCEEDED", this.#stateOf(plan.window, plan.rule), 0));
        else reply(answerOf(plan.row, "VALID", plan.state, left));
      });
    }
  }

  /** Everything but the counter. */
  #plan(here: Replica, request: Verify, isFresh: boolean): Plan {
    const row = this.#find(here, request, isFresh);
    if (row === undefined) {
      return { next: "answer", answer: { status: "done", body: { valid: false, code: "NOT_FOUND", meta: {} } } };
    }
    const { enabled, expires } = row.fields;
    const window = this.#windowOf(here, row);
    const rule = this.#ruleOf(row);
    if (rule === "missing") return { next: "lookAgain" };
    const balance = row.hasCounter ? (this.#balances.get(row.keyId) ?? 0) : undefined;
    const answer = (code: string): Plan => {
      return { next: "answer", answer: answerOf(row, code, this.#stateOf(window, rule), balance) };
    };
    if (!enabled) return answer("DISABLED");
    const isExpired = expires !== undefined && expires <= this.#nowMs;
    if (isExpired && this.#mistake !== "expiryIgnored") return answer("EXPIRED");
    if (window && rule) {
      if (this.#nowMs >= window.endsAtMs) {
        window.endsAtMs = this.#nowMs + rule.duration;
        window.count = 0;
      }
      const tooMany = this.#mistake === (rule.async ? "localOverLimit" : "overLimit") ? 1 : 0;
      if (window.count >= rule.limit + tooMany) return answer("RATE_LIMITED");
      window.count++;
    }
    if (!row.hasCounter) return answer("VALID");
    return { next: "spend", row, rule, window, endsAtMs: window?.endsAtMs, state: this.#stateOf(window, rule) };
  }

  /** What is left after one use; -1 if there was nothing, undefined if there is no counter. */
  #spend(keyId: string, secret: string): number | undefined {
    const name = this.#balances.has(secret) ? secret : keyId;
    const balance = this.#balances.get(name);
    if (balance === undefined || balance === 0) return balance === undefined ? undefined : -1;
    const isWrong = this.#random.chance(0.02);
    if (this.#mistake === "notCharged" && isWrong) return balance - 1;
    if (this.#mistake === "usesSettledLate" && isWrong) {
      this.#after(60, () => {
        const then = this.#balances.get(name);
        if (then !== undefined) this.#balances.set(name, Math.max(0, then - 1));
      });
      return balance - 1;
    }
    this.#balances.set(name, Math.max(0, balance - (this.#mistake === "chargedTwice" && isWrong ? 2 : 1)));
    return balance - 1;
  }

  #find(here: Replica, { keyId, secret }: Verify, isFresh: boolean): Row | undefined {
    const cached = isFresh ? undefined : here.cache.get(keyId);
    const knows = cached?.secrets.some(({ text }) => text === secret);
    const row = cached && knows ? cached : this.#rows.get(keyId);
    if (row === undefined) return undefined;
    here.cache.set(keyId, row);
    const found = row.secrets.find(({ text }) => text === secret);
    return found !== undefined && this.#nowMs < found.endsAtMs ? row : undefined;
  }

  /** The ledger of strict limits knows its rule itself. */
  #ruleOf({ keyId, fields }: Row): KeyFields["ratelimit"] | "missing" {
    if (fields.ratelimit === undefined || fields.ratelimit.async) return fields.ratelimit;
    const rule = this.#rows.get(keyId)?.fields.ratelimit;
    return rule === undefined ? "missing" : { ...rule, async: false };
  }

  #windowOf(here: Replica, { keyId, fields }: Row): Window | undefined {
    if (fields.ratelimit === undefined) return undefined;
    const isLocal = fields.ratelimit.async || this.#mistake === "strictPerReplica";
    const windows = isLocal ? here.windows : this.#windows;
    const name = `${keyId} ${fields.ratelimit.async}`;
    const window = windows.get(name) ?? { endsAtMs: 0, count: 0 };
    windows.set(name, window);
    return window;
  }

  #stateOf(window: Window | undefined, rule: KeyFields["ratelimit"]): LimitState | undefined {
    if (window === undefined || rule === undefined) return undefined;
    const isOpen = this.#nowMs < window.endsAtMs;
    const remaining = Math.max(0, rule.limit - (isOpen ? window.count : 0));
    return { limit: rule.limit, remaining, reset: isOpen ? window.endsAtMs : this.#nowMs + rule.duration };
  }

  // Changes.

  #change(replica: number, operation: Operation, caller: number, asRead?: Row, balanceAsRead?: number): Answer {
    if (operation.kind === "createKey" || operation.kind === "importKeys") return this.#create(operation, caller);
    if (!("keyId" in operation)) throw new Error(`not a change: ${operation.kind}`);
    const row = this.#rows.get(operation.keyId);
    if (row === undefined) {
      const isDeletedAgain = this.#mistake === "deletedTwice" && operation.kind === "deleteKey" && asRead !== undefined;
      return isDeletedAgain ? { status: "done", body: {} } : notFound;
    }
    const next = { ...row, version: row.version + 1 };
    switch (operation.kind) {
      case "updateKey": {
        const { ifVersion, changes } = operation;
        const compared = this.#mistake === "twoByOneVersion" ? (asRead ?? row) : row;
        if (ifVersion !== undefined && compared.version !== ifVersion && this.#mistake !== "ifVersionIgnored") {
          if (this.#mistake === "eventOfRefused") this.#log(next, operation, caller);
          return { status: "conflict" };
        }
        const before = this.#mistake === "lostUpdate" ? (asRead ?? row) : row;
        const made = { ...next, fields: this.#apply(before.fields, changes) };
        if (this.#mistake === "windowAnew" && changes.ratelimit) this.#windows.delete(`${row.keyId} false`);
        this.#commit(replica, made, operation, caller);
        return { status: "done", body: this.#read(made) };
      }
      case "updateRemaining":
        return this.#updateRemaining(replica, next, operation, caller, balanceAsRead);
      case "rerollKey": {
        const key = `secret-${++this.#made}`;
        const overlap = this.#mistake === "secretLivesOn" ? Infinity : operation.overlap;
        const last = row.secrets.at(-1) as SimulatedSecret;
        const secrets = [
          { ...last, endsAtMs: this.#nowMs + overlap },
          { text: key, endsAtMs: Infinity },
        ];
        const balance = this.#balances.get(row.keyId);
        if (this.#mistake === "ownBalance" && balance !== undefined) this.#balances.set(key, balance);
        this.#commit(replica, { ...next, secrets }, operation, caller);
        return { status: "done", body: { keyId: row.keyId, key } };
      }
      case "deleteKey":
        this.#commit(replica, next, operation, caller);
        this.#rows.delete(row.keyId);
        this.#balances.delete(row.keyId);
        return { status: "done", body: {} };
      default:
        throw new Error(`not a change: ${operation.kind}`);
    }
  }

  #create(operation: Extract<Operation, { kind: "createKey" | "importKeys" }>, caller: number): Answer {
    const { fields, remaining } = operation;
    const keyId = `key-${++this.#made}`;
    const key = operation.kind === "importKeys" ? operation.secret : `secret-${++this.#made}`;
    const secrets = [{ text: key, endsAtMs: Infinity }];
    const row = { keyId, version: 1, fields, hasCounter: remaining !== undefined, secrets };
    this.#rows.set(keyId, row);
    if (remaining !== undefined) this.#balances.set(keyId, remaining);
    this.#log(row, operation, caller);
    return { status: "done", body: operation.kind === "importKeys" ? { keyId } : { keyId, key } };
  }

  #updateRemaining(
    replica: number,
    next: Row,
    operation: Extract<Operation, { kind: "updateRemaining" }>,
    caller: number,
    balanceAsRead: number | undefined,
  ): Answer {
    const { op, value } = operation;
    const balance = this.#balances.get(next.keyId);
    const from = this.#mistake === "decrementsByHalves" && op === "decrement" ? balanceAsRead : balance;
    const after =
      op === "set" ? value : from === undefined ? undefined : from + (op === "increment" ? 1 : -1) * (value ?? 0);
    if (after === undefined || (after !== null && after < 0)) {
      if (this.#mistake === "refusedDecrement" && balance !== undefined) this.#balances.set(next.keyId, 0);
      return { status: "conflict" };
    }
    if (after === null) this.#balances.delete(next.keyId);
    else this.#balances.set(next.keyId, after);
    this.#commit(replica, { ...next, hasCounter: after !== null }, operation, caller);
    return { status: "done", body: after === null ? {} : { remaining: after } };
  }

  #apply(before: KeyFields, changes: FieldChanges): KeyFields {
    const after: Record<string, unknown> = { ...before };
    for (const [name, value] of Object.entries(changes)) {
      if (value === null) delete after[name];
      else after[name] = name === "expires" ? Math.max(value as number, this.#nowMs) : value;
    }
    return after as unknown as KeyFields;
  }

  /** Stores the row with its event, and tells the replicas. */
  #commit(replica: number, row: Row, operation: Operation, caller: number): void {
    this.#rows.set(row.keyId, row);
    this.#log(row, operation, caller);
    for (const [index, each] of this.#replicas.entries()) {
      const forget = () => this.#forget(each, row, operation, index === replica);
      if (index === replica) this.#mistake === "staleHere" ? this.#after(150, forget) : forget();
      else if (this.#mistake === "staleElsewhere" && index === 2) this.#after(3000, forget);
      else this.#after(this.#random.integer(0, newsMaxMs), forget);
    }
  }

  #forget(replica: Replica, row: Row, operation: Operation, isHere: boolean): void {
    const cached = replica.cache.get(row.keyId);
    if (this.#mistake === "localForgotten") replica.windows.delete(`${row.keyId} true`);
    if (cached === undefined || cached.version >= row.version) return;
    if (!isHere) {
      if (this.#mistake === "deletedVerifies" && operation.kind === "deleteKey") return;
      if (this.#mistake === "counterIgnored" && row.hasCounter && !cached.hasCounter) return;
      const kept = this.#mistake === "halfUpdate" && { name: cached.fields.name };
      const enabled = this.#mistake === "enabledIgnored" && { enabled: cached.fields.enabled };
      if (kept || enabled) {
        const mixed = JSON.parse(JSON.stringify({ ...row.fields, ...kept, ...enabled }));
        replica.cache.set(row.keyId, { ...row, fields: mixed });
        return;
      }
    }
    replica.cache.delete(row.keyId);
  }

  #log({ keyId, version }: Row, operation: Operation, caller: number): void {
    const isWrong = this.#random.chance(0.02);
    if (this.#mistake === "eventMissing" && isWrong) return;
    const id = `evt-${++this.#made}`;
    const fields = operation.kind === "updateKey" ? Object.keys(operation.changes) : [];
    const who = actors[(caller + (this.#mistake === "wrongActor" && isWrong ? 1 : 0)) % actors.length] as string;
    const event = {
      id,
      atMs: this.#nowMs,
      method: `keys.${operation.kind}`,
      actor: who,
      targetId: keyId,
      fields,
      version,
    };
    this.events.push(event);
    if (this.#mistake === "eventTwice" && isWrong) this.events.push({ ...event, id: `${id}-again` });
  }

  #read(row: Row): ReadKey {
    const remaining = this.#balances.get(row.keyId);
    return { keyId: row.keyId, version: row.version, ...row.fields, ...(remaining !== undefined && { remaining }) };
  }

  // Time.

  #path(): number {
    return this.#random.chance(0.05) ? this.#random.integer(10, 120) : this.#random.integer(1, 12);
  }

  #after(delayMs: number, step: () => void): void {
    const due = { atMs: this.#nowMs + delayMs, order: ++this.#made, step };
    let at = this.#due.length;
    while (at > 0 && (this.#due[at - 1] as typeof due).atMs > due.atMs) at--;
    this.#due.splice(at, 0, due);
  }
}

type Verify = Extract<Operation, { kind: "verifyKey" }>;
type LimitState = NonNullable<Verification["ratelimit"]>;

type Plan =
  | { readonly next: "answer"; readonly answer: Answer }
  | { readonly next: "lookAgain" }
  | {
      readonly next: "spend";
      readonly row: Row;
      readonly rule: KeyFields["ratelimit"];
      readonly window: Window | undefined;
      readonly endsAtMs: number | undefined;
      readonly state: LimitState | undefined;
    };

function answerOf({ keyId, fields }: Row, code: string, ratelimit?: LimitState, remaining?: number): Answer {
  const { name, ownerId, expires, meta } = fields;
  const body: Verification = {
    keyId,
    valid: code === "VALID",
    code,
    meta,
    ...(name !== undefined && { name }),
    ...(ownerId !== undefined && { ownerId }),
    ...(expires !== undefined && { expires }),
    ...(ratelimit !== undefined && { ratelimit }),
    ...(remaining !== undefined && { remaining }),
  };
  return { status: "done", body };
}

const notFound: Answer = { status: "notFound" };
