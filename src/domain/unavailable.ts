/**
 * The service could not decide, for example because a store does not answer or a queue is full. It says nothing about a
 * key. Retrying later can help. Unless stated otherwise it is unknown whether the requested change happened.
 */
export class Unavailable extends Error {
  override readonly name: string = "Unavailable";
  readonly retryAfterMs: number;
  /** The problem concerns one key only: other keys can still be answered. */
  readonly affectsOneKeyOnly: boolean;

  constructor(message: string, options: { cause?: unknown; retryAfterMs?: number; affectsOneKeyOnly?: boolean } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.retryAfterMs = options.retryAfterMs ?? 1000;
    this.affectsOneKeyOnly = options.affectsOneKeyOnly ?? false;
  }
}
