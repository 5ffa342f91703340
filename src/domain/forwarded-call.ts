/** How the message of a call is encoded: JSON, the query of a GET, JSON with the masks that gRPC and Connect know, Protobuf. */
export type Encoding = "json" | "query" | "rpcJson" | "proto";

/** A message as it came, without the frame of its protocol. */
export interface EncodedMessage {
  readonly encoding: Encoding;
  readonly bytes: Uint8Array;
}

/**
 * A management call as a front forwards it to the process that has the core: as it came, so that it is decoded and checked
 * once, there. Plain data.
 */
export interface ForwardedCall {
  /** With its service, such as `KeysService/CreateKey`. */
  readonly method: string;
  readonly message: EncodedMessage;
  readonly rootKey: string;
  /** The header `Idempotency-Key`. */
  readonly idempotencyKey: string | undefined;
  readonly requestId: string;
  readonly protocol: string;
  /** The address of the caller; undefined if its connection is closed. */
  readonly address: string | undefined;
  /** How long its caller still waits; undefined: it does not say. */
  readonly timeLeftMs: number | undefined;
}

/** What its caller gets. Plain data. */
export type ForwardedAnswer =
  /** The method's response in Protobuf. */
  { readonly response: Uint8Array } | { readonly error: ForwardedError };

/** An error of the public API. */
export interface ForwardedError {
  readonly code: string;
  readonly message: string;
  readonly violations: readonly { readonly path: string; readonly message: string }[];
  readonly retryAfterMs: number | undefined;
  readonly isRepeatable: boolean;
  /** The code over gRPC and Connect. */
  readonly rpc: number;
}
