/**
 * The service could not decide: a store does not answer, a queue is full. Never a statement about a key. Trying again
 * later can help; whether what was asked for happened is unknown unless the thrower says otherwise.
 */
export class Unavailable extends Error {
  override readonly name = "Unavailable";
  readonly retryAfterMs: number;
  /** It was found out about one key. Another one that is asked for can be answered all the same. */
  readonly isOfOneKey: boolean;

  constructor(message: string, options: { cause?: unknown; retryAfterMs?: number; isOfOneKey?: boolean } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.retryAfterMs = options.retryAfterMs ?? 1000;
    this.isOfOneKey = options.isOfOneKey ?? false;
  }
}
