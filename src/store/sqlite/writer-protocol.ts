import type { KeyedPermitAsk, PermitResult } from "../permit-ledger.ts";
import type { Charge, ChargeResult } from "../usage-ledger.ts";
import type { CheckResult } from "./check-data.ts";

/* What the event loop and the writer thread tell each other. Plain data: it crosses threads by structured clone. */

/** One piece of work, done wholly or not at all. */
export type WriterJob =
  | { readonly kind: "statements"; readonly statements: readonly Statement[] }
  | { readonly kind: "settle"; readonly charges: readonly Charge[] }
  | { readonly kind: "exchange"; readonly asks: readonly KeyedPermitAsk[] };

/** When a transaction happens. There is one at a time: from that moment on every row is its own. */
export interface WriterTime {
  /** By the wall clock, which refills follow. */
  readonly nowMs: number;
  /** By the clock of windows, which nobody can set. */
  readonly windowNowMs: number;
}

export interface Statement {
  readonly sql: string;
  readonly parameters: readonly SqlValue[];
}

export type SqlValue = string | number | bigint | null | Uint8Array;

export interface StatementResult {
  readonly rows: readonly unknown[];
  readonly changes: number;
}

export type JobResult =
  | { readonly kind: "statements"; readonly results: readonly StatementResult[] }
  | { readonly kind: "settle"; readonly results: readonly ChargeResult[] }
  | { readonly kind: "exchange"; readonly results: readonly PermitResult[] }
  | { readonly kind: "failed"; readonly failure: WriterFailure };

/** SQLite's result code and its message, which names tables and columns but never a value. */
export interface WriterFailure {
  readonly resultCode: number;
  readonly message: string;
}

export type WriterRequest = { readonly jobs: readonly WriterJob[]; readonly time: WriterTime } | "close";

/** What the writer thread is started with. */
export interface WriterSetup {
  readonly file: string;
  /** Whether the file is to be checked before anything is written. */
  readonly checkFirst: boolean;
}

export type WriterReply =
  /** The file is open, and was checked if that was asked for. */
  | { readonly opened: CheckResult | undefined }
  | "closed"
  /** One result per job: the transaction is durable. `damage`: a job failed because the file could not be read or written. */
  | { readonly committed: readonly JobResult[]; readonly damage?: WriterFailure | undefined }
  /** The transaction as a whole failed: none of its jobs happened. */
  | { readonly aborted: WriterFailure };
