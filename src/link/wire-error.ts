import { Unavailable } from "../domain/unavailable.ts";

/** An error as it is sent between threads. It keeps what callers distinguish, and the stack trace for the log. */
export interface WireError {
  readonly isUnavailable: boolean;
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
    isUnavailable: error instanceof Unavailable,
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

export function fromWire({ isUnavailable, message, stack, facts, cause, ...rest }: WireError): Error {
  const origin = cause === undefined ? {} : { cause: fromWire(cause) };
  const error = isUnavailable ? new Unavailable(message, { ...origin, ...rest }) : new Error(message, origin);
  if (stack !== undefined) error.stack = stack;
  return Object.assign(error, facts);
}
