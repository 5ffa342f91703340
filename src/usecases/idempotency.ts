import { deriveKey, hmac, seal, unseal } from "../ambient/crypto.ts";
import type { Random } from "../ambient/random.ts";
import type { Secret } from "../domain/secret.ts";
import type { IdempotencyRecord, KeptAnswer, Management } from "../store/management.ts";

const keptForMs = 24 * 60 * 60 * 1000;
const nonceLength = 12;

/** Makes a repeated request safe: both halves together name one answer. */
export interface IdempotencyKey {
  readonly rootKey: Secret;
  readonly value: Secret;
}

/** The idempotency key was used before, for another request. */
export class IdempotencyConflict extends Error {
  override readonly name = "IdempotencyConflict";
}

/**
 * Keeps an answer, secret included, in a form that only the same caller with the same idempotency key can open: it is
 * sealed under a key derived from both, and everything stored beside it is keyed by the root key. A copy of the
 * database reveals neither the secrets, nor the idempotency keys, nor what was asked for.
 */
export function createIdempotency<Answer>({ rootKey, value: idempotencyKey }: IdempotencyKey, request: object) {
  const lookupKey = deriveKey(rootKey.reveal(), "", "latchkey idempotency lookup");
  const requestKey = deriveKey(rootKey.reveal(), "", "latchkey idempotency request");
  const sealingKey = deriveKey(rootKey.reveal(), idempotencyKey.reveal(), "latchkey idempotency answer");
  const lookup = hmac(lookupKey, idempotencyKey.reveal());
  const requestDigest = hmac(requestKey, canonicalJson(request));

  /** Opens an answer that was kept under the same idempotency key, if it was given to the same request. */
  function open(kept: KeptAnswer): Answer {
    if (kept.requestDigest !== requestDigest) {
      throw new IdempotencyConflict("this Idempotency-Key was used for a different request");
    }
    return JSON.parse(unseal(sealingKey, kept.sealedAnswer)) as Answer;
  }

  return {
    open,

    record(answer: Answer, nowMs: number, random: Random): IdempotencyRecord {
      const sealedAnswer = seal(sealingKey, random.bytes(nonceLength), JSON.stringify(answer));
      return { lookup, requestDigest, sealedAnswer, createdAtMs: nowMs, expiresAtMs: nowMs + keptForMs };
    },

    /** The answer to an earlier request of the same kind, if there is one. */
    async find(management: Pick<Management, "read">, nowMs: number): Promise<Answer | undefined> {
      const kept = await management.read({ kind: "keptAnswer", lookup, nowMs });
      return kept && open(kept);
    },
  };
}

/** The same text for the same request: the order of its fields does not matter. */
function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) =>
    inner !== null && typeof inner === "object" && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}
