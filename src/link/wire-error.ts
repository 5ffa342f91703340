import { Forbidden } from "../domain/forbidden.ts";
import { RootKeyRefused } from "../domain/root-key-refused.ts";
import { Unavailable } from "../domain/unavailable.ts";

/** An error as it is sent between threads. It keeps what callers distinguish, and the stack trace for the log. */
export interface WireError {
  readonly kind: "unavailable" | "rootKeyRefused" | "forbidden" | "other";
  readonly message: string;
  readonly stack: string | undefined;
  readonly retryAfterMs: number;
  readonly affectsOneKeyOnly: boolean;
  readonly nothingDone: boolean;
  /** What Node reports about a failed system call. */
  readonly facts: { readonly code?: string; readonly address?: string; readonly port?: number };
  readonly cause: WireError | undefined;
}

export function toWire(error: unknown): WireError {
  const { message, stack, cause, code, address, port } = (
    error instanceof Error ? error : new Error(String(error))
  ) as NodeJS.ErrnoException & { address?: string; port?: number };
  return {
    kind: kindOf(error),
    message,
    stack,
    retryAfterMs: error instanceof Unavailable ? error.retryAfterMs : 0,
    affectsOneKeyOnly: error instanceof Unavailable && error.affectsOneKeyOnly,
    nothingDone: error instanceof Unavailable && error.nothingDone,
    facts: {
      ...(typeof code === "string" && { code }),
      ...(typeof address === "string" && { address }),
      ...(typeof port === "number" && { port }),
    },
    cause: cause === undefined ? undefined : toWire(cause),
  };
}

export function fromWire(wire: WireError): Error {
  const error = errorOf(wire);
  if (wire.stack !== undefined) error.stack = wire.stack;
  return Object.assign(error, wire.facts);
}

function kindOf(error: unknown): WireError["kind"] {
  if (error instanceof Unavailable) return "unavailable";
  if (error instanceof RootKeyRefused) return "rootKeyRefused";
  return error instanceof Forbidden ? "forbidden" : "other";
}

function errorOf({ kind, message, cause, retryAfterMs, affectsOneKeyOnly, nothingDone }: WireError): Error {
  const origin = cause === undefined ? {} : { cause: fromWire(cause) };
  switch (kind) {
    case "unavailable":
      return new Unavailable(message, { ...origin, retryAfterMs, affectsOneKeyOnly, nothingDone });
    case "rootKeyRefused":
      return new RootKeyRefused();
    case "forbidden":
      return new Forbidden(message);
    case "other":
      return new Error(message, origin);
  }
}
