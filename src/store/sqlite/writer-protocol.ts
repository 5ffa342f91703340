import type { PermitResult, SubjectAsk } from "../permit-ledger.ts";
import type { Sql, SqlValue } from "../sql/sql.ts";
import type { Charge, ChargeResult } from "../usage-ledger.ts";
import type { CheckResult } from "./check-data.ts";

/* The messages between the event loop and the writer thread. Plain data: it crosses threads by structured clone. */

/** One unit of work: all of it happens, or nothing. */
export type WriterJob<AnyStatement = NumberedStatement> =
  | { readonly kind: "statements"; readonly statements: readonly AnyStatement[] }
  | { readonly kind: "settle"; readonly charges: readonly Charge[] }
  | { readonly kind: "exchange"; readonly asks: readonly SubjectAsk[] };

/** The time of a transaction. There is one transaction at a time, so from then on it has all rows to itself. */
export interface WriterTime {
  /** From the wall clock, for refills. */
  readonly nowMs: number;
  /** From the windows' clock, which cannot be set. */
  readonly windowNowMs: number;
}

export interface Statement {
  readonly sql: string;
  readonly parameters: readonly SqlValue[];
}

export function toStatement({ texts, values }: Sql): Statement {
  return { sql: texts.join("?"), parameters: values };
}

/** Its number, its parameters, and its text unless the writer thread knows the number. Lists are copied faster than objects. */
export type NumberedStatement = readonly [number: number, parameters: readonly SqlValue[], sql?: string];

/** The names of the columns come with the result of a statement that was sent with its text. */
export type NumberedResult = readonly [
  rows: readonly (readonly unknown[])[],
  changes: number,
  columns?: readonly string[] | undefined,
];

export type JobResult<AnyResult = NumberedResult> =
  | { readonly kind: "statements"; readonly results: readonly AnyResult[] }
  | { readonly kind: "settle"; readonly results: readonly ChargeResult[] }
  | { readonly kind: "exchange"; readonly results: readonly PermitResult[] }
  | { readonly kind: "failed"; readonly failure: WriterFailure };

/** SQLite's result code and its message, which names tables and columns but never a value. */
export interface WriterFailure {
  readonly resultCode: number;
  readonly message: string;
}

/** `clearsNumbers`: the numbers of statements that were sent before are not used any more. */
export type WriterRequest =
  | { readonly jobs: readonly WriterJob[]; readonly time: WriterTime; readonly clearsNumbers: boolean }
  | "close";

/** The writer thread's start parameters. */
export interface WriterSetup {
  readonly file: string;
  /** Whether to check the file before anything is written. */
  readonly checkFirst: boolean;
}

export type WriterReply =
  /** The file is open, and was checked if that was asked for. */
  | { readonly opened: CheckResult | undefined }
  | "closed"
  /** One result per job: the transaction is durable. `damage`: the file could not be read or written, for a job or afterwards. */
  | { readonly committed: readonly JobResult[]; readonly damage: WriterFailure | undefined; readonly isFull: boolean }
  /** The transaction as a whole failed: none of its jobs happened. `isFull`: the last write found no room on the disk. */
  | { readonly aborted: WriterFailure; readonly isFull: boolean };
