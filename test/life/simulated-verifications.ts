import { SeededRandom } from "../domain/seeded-random.ts";
import type { Mistake } from "./mistakes.ts";
import type { Answer, KeyFields, Operation, Verification } from "./operations.ts";

export interface SimulatedSecret {
  readonly text: string;
  readonly endsAtMs: number;
}

/** As the store and the caches have it. Never changed: replaced. */
export interface Row {
  readonly keyId: string;
  readonly version: number;
  readonly fields: KeyFields;
  readonly hasCounter: boolean;
  readonly secrets: readonly SimulatedSecret[];
}

export interface Window {
  endsAtMs: number;
  count: number;
  /** With the mistake: the higher limit that counts for a moment more. */
  before?: { readonly limit: number; readonly untilMs: number };
}

export class Replica {
  readonly cache = new Map<string, Row>();
  readonly windows = new Map<string, Window>();
}

/** The state of the simulated service in virtual time, and how it answers verifications. */
export class SimulatedVerifications {
  protected readonly random: SeededRandom;
  protected readonly mistake: Mistake | undefined;
  protected readonly fronts = [new Replica(), new Replica(), new Replica()];
  protected readonly rows = new Map<string, Row>();
  /** Of a key; with the mistake, of a secret. */
  protected readonly balances = new Map<string, number>();
  protected readonly windows = new Map<string, Window>();
  protected readonly due: { atMs: number; order: number; step: () => void }[] = [];
  protected atMs = 1_000_000;
  protected made = 0;

  constructor(seed: number, mistake: Mistake | undefined) {
    this.random = new SeededRandom(seed ^ 0x5eed);
    this.mistake = mistake;
  }

  nowMs(): number {
    return this.atMs;
  }

  clockMs(): number {
    return this.atMs;
  }

  runToEnd(): void {
    for (let due = this.due.shift(); due !== undefined; due = this.due.shift()) {
      this.atMs = due.atMs;
      due.step();
    }
  }

  // Verifications.

  protected verify(here: Replica, request: Verify, reply: (answer: Answer) => void, isFresh = false): void {
    const plan = this.plan(here, request, isFresh);
    if (plan.next === "answer") reply(plan.answer);
    else if (plan.next === "lookAgain") this.verify(here, request, reply, true);
    else {
      this.after(this.path(), () => {
        const left = this.spend(plan.row.keyId, request.secret);
        const isOpen = plan.window?.endsAtMs === plan.endsAtMs;
        const isReleased = isOpen && (left === undefined || left < 0) && this.mistake !== "refusalTakes";
        if (plan.window && isReleased) plan.window.count--;
        if (left === undefined) this.verify(here, request, reply, true);
        else if (left < 0) reply(answerOf(plan.row, "USAGE_EXCEEDED", this.stateOf(plan.window, plan.rule), 0));
        else reply(answerOf(plan.row, "VALID", plan.state, left));
      });
    }
  }

  /** Everything but the counter. */
  protected plan(here: Replica, request: Verify, isFresh: boolean): Plan {
    const row = this.find(here, request, isFresh);
    if (row === undefined) {
      return { next: "answer", answer: { status: "done", body: { valid: false, code: "NOT_FOUND", meta: {} } } };
    }
    const { enabled, expires } = row.fields;
    const window = this.windowOf(here, row);
    const rule = this.ruleOf(row);
    if (rule === "missing") return { next: "lookAgain" };
    const balance = row.hasCounter ? (this.balances.get(row.keyId) ?? 0) : undefined;
    const answer = (code: string): Plan => {
      return { next: "answer", answer: answerOf(row, code, this.stateOf(window, rule), balance) };
    };
    if (!enabled) return answer("DISABLED");
    const isExpired = expires !== undefined && expires <= this.atMs;
    if (isExpired && this.mistake !== "expiryIgnored") return answer("EXPIRED");
    if (window && rule) {
      if (this.atMs >= window.endsAtMs) {
        window.endsAtMs = this.atMs + rule.duration;
        window.count = 0;
      }
      const tooMany = this.mistake === (rule.async ? "localOverLimit" : "overLimit") ? 1 : 0;
      const limit = window.before && this.atMs < window.before.untilMs ? window.before.limit : rule.limit;
      if (window.count >= limit + tooMany) return answer("RATE_LIMITED");
      window.count++;
    }
    if (!row.hasCounter) return answer("VALID");
    return { next: "spend", row, rule, window, endsAtMs: window?.endsAtMs, state: this.stateOf(window, rule) };
  }

  /** What is left after one use; -1 if there was nothing, undefined if there is no counter. */
  protected spend(keyId: string, secret: string): number | undefined {
    const name = this.balances.has(secret) ? secret : keyId;
    const balance = this.balances.get(name);
    if (balance === undefined || balance === 0) return balance === undefined ? undefined : -1;
    const isWrong = this.random.chance(0.02);
    if (this.mistake === "notCharged" && isWrong) return balance - 1;
    if (this.mistake === "usesSettledLate" && isWrong) {
      this.after(60, () => {
        const then = this.balances.get(name);
        if (then !== undefined) this.balances.set(name, Math.max(0, then - 1));
      });
      return balance - 1;
    }
    this.balances.set(name, Math.max(0, balance - (this.mistake === "chargedTwice" && isWrong ? 2 : 1)));
    return balance - 1;
  }

  protected find(here: Replica, { keyId, secret }: Verify, isFresh: boolean): Row | undefined {
    const cached = isFresh ? undefined : here.cache.get(keyId);
    const knows = cached?.secrets.some(({ text }) => text === secret);
    const row = cached && knows ? cached : this.rows.get(keyId);
    if (row === undefined) return undefined;
    here.cache.set(keyId, row);
    const found = row.secrets.find(({ text }) => text === secret);
    return found !== undefined && this.atMs < found.endsAtMs ? row : undefined;
  }

  /** The ledger of strict limits knows its rule itself. */
  protected ruleOf({ keyId, fields }: Row): KeyFields["ratelimit"] | "missing" {
    if (fields.ratelimit === undefined || fields.ratelimit.async) return fields.ratelimit;
    const rule = this.rows.get(keyId)?.fields.ratelimit;
    return rule === undefined ? "missing" : { ...rule, async: false };
  }

  protected windowOf(here: Replica, { keyId, fields }: Row): Window | undefined {
    if (fields.ratelimit === undefined) return undefined;
    const isLocal = fields.ratelimit.async || this.mistake === "strictPerReplica";
    const windows = isLocal ? here.windows : this.windows;
    const name = `${keyId} ${fields.ratelimit.async}`;
    const window = windows.get(name) ?? { endsAtMs: 0, count: 0 };
    windows.set(name, window);
    return window;
  }

  protected stateOf(window: Window | undefined, rule: KeyFields["ratelimit"]): LimitState | undefined {
    if (window === undefined || rule === undefined) return undefined;
    const isOpen = this.atMs < window.endsAtMs;
    const remaining = Math.max(0, rule.limit - (isOpen ? window.count : 0));
    return { limit: rule.limit, remaining, reset: isOpen ? window.endsAtMs : this.atMs + rule.duration };
  }

  // Time.

  protected path(): number {
    return this.random.chance(0.05) ? this.random.integer(10, 120) : this.random.integer(1, 12);
  }

  protected after(delayMs: number, step: () => void): void {
    const due = { atMs: this.atMs + delayMs, order: ++this.made, step };
    let at = this.due.length;
    while (at > 0 && (this.due[at - 1] as typeof due).atMs > due.atMs) at--;
    this.due.splice(at, 0, due);
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
