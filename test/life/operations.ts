/* The operations of a random run, and the record of what came of each. */

export interface Ratelimit {
  readonly async: boolean;
  readonly limit: number;
  readonly duration: number;
}

/** What a key is, but for its counter and its secrets. Every change puts a number of its own into `meta`. */
export interface KeyFields {
  readonly name?: string;
  readonly ownerId?: string;
  readonly meta: { readonly change?: number };
  readonly enabled: boolean;
  readonly expires?: number;
  readonly ratelimit?: Ratelimit;
}

/** Null removes, absent keeps. */
export type FieldChanges = { readonly [Name in keyof KeyFields]?: KeyFields[Name] | null };

export type Operation =
  | { readonly kind: "createKey"; readonly fields: KeyFields; readonly remaining?: number }
  | { readonly kind: "importKeys"; readonly fields: KeyFields; readonly remaining?: number; readonly secret: string }
  | { readonly kind: "verifyKey"; readonly keyId: string; readonly secret: string }
  | { readonly kind: "getKey"; readonly keyId: string }
  | { readonly kind: "listKeys" }
  | { readonly kind: "updateKey"; readonly keyId: string; readonly ifVersion?: number; readonly changes: FieldChanges }
  | {
      readonly kind: "updateRemaining";
      readonly keyId: string;
      readonly op: "set" | "increment" | "decrement";
      readonly value: number | null;
    }
  | { readonly kind: "rerollKey"; readonly keyId: string; readonly overlap: number }
  | { readonly kind: "deleteKey"; readonly keyId: string };

export type Kind = Operation["kind"];

/** A key as it is read. */
export interface ReadKey extends KeyFields {
  readonly keyId: string;
  readonly remaining?: number;
  readonly version: number;
}

export interface Verification {
  readonly keyId?: string;
  readonly valid: boolean;
  readonly code: string;
  readonly meta: { readonly change?: number };
  readonly remaining?: number;
  readonly ownerId?: string;
  readonly name?: string;
  readonly expires?: number;
  readonly ratelimit?: { readonly limit: number; readonly remaining: number; readonly reset: number };
}

/** What a method answers when it has done what was asked. */
export interface Bodies {
  readonly createKey: { readonly keyId: string; readonly key: string };
  readonly importKeys: { readonly keyId: string };
  readonly verifyKey: Verification;
  readonly getKey: ReadKey;
  readonly listKeys: { readonly keys: readonly ReadKey[] };
  readonly updateKey: ReadKey;
  readonly updateRemaining: { readonly remaining?: number };
  readonly rerollKey: { readonly keyId: string; readonly key: string };
  readonly deleteKey: object;
}

export type Answer<K extends Kind = Kind> =
  | { readonly status: "done"; readonly body: Bodies[K] }
  | { readonly status: "notFound" }
  | { readonly status: "conflict" }
  /** The caller left, or the service could not say: it may have happened, and may still happen. */
  | { readonly status: "unknown"; readonly cause: string };

/** One operation of a history. Times in ms: monotonic ones, and those of the clock by which keys expire. */
export interface Call<K extends Kind = Kind> {
  readonly number: number;
  readonly caller: number;
  readonly replica: number;
  /** The id of the root key that the caller presents. */
  readonly actor: string;
  readonly operation: Extract<Operation, { kind: K }>;
  readonly answer: Answer<K>;
  readonly startMs: number;
  /** Infinity for an answer that never came. */
  readonly endMs: number;
  readonly startClockMs: number;
  readonly endClockMs: number;
}

/** One event, as it is found at the end. */
export interface LoggedEvent {
  readonly id: string;
  readonly atMs: number;
  readonly method: string;
  readonly actor: string;
  readonly targetId: string;
  readonly fields: readonly string[];
  readonly version: number;
}

export interface History {
  readonly calls: readonly Call[];
  readonly events: readonly LoggedEvent[];
  /** Whether replicas tell each other of their local windows. If not, each window is one location's own and exact. */
  readonly localWindowsAreShared: boolean;
  /** For how much of this time the machine itself stood still. A replica cannot learn of anything meanwhile. */
  standstillMs(fromMs: number, toMs: number): number;
}

export function isKind<K extends Kind>(call: Call, kind: K): call is Call<K> & Call {
  return call.operation.kind === kind;
}

/** What a call of this kind answered; undefined for another kind, and if it was not done. */
export function bodyOf<K extends Kind>(call: Call, kind: K): Bodies[K] | undefined {
  return isKind(call, kind) && call.answer.status === "done" ? (call.answer.body as Bodies[K]) : undefined;
}

/** The key that a call is about. A key that was just made is known by the answer only. */
export function keyIdOf(call: Call): string | undefined {
  if ("keyId" in call.operation) return call.operation.keyId;
  return (bodyOf(call, "createKey") ?? bodyOf(call, "importKeys"))?.keyId;
}
