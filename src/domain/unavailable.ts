/**
 * The service could not decide: a store does not answer, a queue is full. Never a statement about a key. Trying again
 * later can help; whether what was asked for happened is unknown unless the thrower says otherwise.
 */
export class Unavailable extends Error {
  override readonly name = "Unavailable";
  readonly retryAfterMs: number;

  constructor(message: string, options: { cause?: unknown; retryAfterMs?: number } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.retryAfterMs = options.retryAfterMs ?? 1000;
  }
}
