import { deriveKey, hmac, seal, unseal } from "../ambient/crypto.ts";
import type { Random } from "../ambient/random.ts";
import type { Secret } from "../domain/secret.ts";
import type { IdempotencyRecord } from "../store/key-store.ts";

const keptForMs = 24 * 60 * 60 * 1000;
const nonceLength = 12;

/**
 * Keeps an answer, secret included, in a form that only the same caller with the same idempotency key can open: it is
 * sealed under a key derived from both, and everything stored beside it is keyed by the root key. A copy of the
 * database reveals neither the secrets, nor the idempotency keys, nor what was asked for.
 */
export function createIdempotency<Answer>(rootKey: Secret, idempotencyKey: Secret) {
  const lookupKey = deriveKey(rootKey.reveal(), "", "latchkey idempotency lookup");
  const requestKey = deriveKey(rootKey.reveal(), "", "latchkey idempotency request");
  const sealingKey = deriveKey(rootKey.reveal(), idempotencyKey.reveal(), "latchkey idempotency answer");
  return {
    record(request: object, answer: Answer, nowMs: number, random: Random): IdempotencyRecord {
      return {
        lookup: hmac(lookupKey, idempotencyKey.reveal()),
        requestDigest: hmac(requestKey, canonicalJson(request)),
        sealedAnswer: seal(sealingKey, random.bytes(nonceLength), JSON.stringify(answer)),
        createdAtMs: nowMs,
        expiresAtMs: nowMs + keptForMs,
      };
    },
    open: (sealedAnswer: string) => JSON.parse(unseal(sealingKey, sealedAnswer)) as Answer,
  };
}

/** The same text for the same request, in whatever order its fields were sent. */
function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) =>
    inner !== null && typeof inner === "object" && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}
