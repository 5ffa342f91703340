import type { Statement, WriterFailure } from "./writer-protocol.ts";

/* What the event loop and the thread that reads lists tell each other. */

export interface ListSetup {
  readonly file: string;
}

export type ListRequest = Statement | "close";

/** One for each statement. */
export type ListReply = { readonly rows: readonly unknown[] } | { readonly failed: WriterFailure };
