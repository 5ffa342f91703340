import type { Ambient } from "../ambient/ambient.ts";
import { deriveKey, hmac, seal, sha256, unseal } from "../ambient/crypto.ts";
import type { Random } from "../ambient/random.ts";
import type { Secret } from "../domain/secret.ts";
import { type Command, type IdempotencyRecord, type KeptAnswer, targetIdOf } from "../store/commands.ts";
import type { Management, Outcome } from "../store/management.ts";

const keptForMs = 24 * 60 * 60 * 1000;
const nonceLength = 12;

/** Makes a repeated request safe. */
export interface IdempotencyKey {
  readonly rootKey: Secret;
  readonly value: Secret;
  readonly method: string;
  /** The API that the request names: then all root keys share the idempotency keys of the method there. */
  readonly apiId?: string | undefined;
}

/** The idempotency key cannot be used for this request. Safe to show to the caller. */
export class IdempotencyConflict extends Error {
  override readonly name = "IdempotencyConflict";
}

/**
 * Keeps an answer, secret included, in a form that only the same caller with the same idempotency key can open: it is
 * sealed under a key derived from both, and so is what was asked for. A copy of the database reveals no secrets. Where
 * root keys share idempotency keys, one that is short enough to be guessed can be found in it.
 */
export function createIdempotency<Answer>(key: IdempotencyKey, request: object) {
  const { rootKey, value: idempotencyKey, method, apiId } = key;
  const lookupKey = deriveKey(rootKey.reveal(), "", "latchkey idempotency lookup");
  const requestKey = deriveKey(rootKey.reveal(), "", "latchkey idempotency request");
  const sealingKey = deriveKey(rootKey.reveal(), idempotencyKey.reveal(), "latchkey idempotency answer");
  const named = JSON.stringify([method, apiId ?? null, idempotencyKey.reveal()]);
  const lookup = apiId === undefined ? hmac(lookupKey, named) : sha256(named);
  const requestDigest = hmac(requestKey, canonicalJson(request));

  /** Opens an answer that was kept under the same idempotency key, if it was given to the same request. */
  function open({ targetId, ...kept }: KeptAnswer): Answer {
    const answer = opened(sealingKey, kept.sealedAnswer);
    if (answer === undefined) {
      throw new IdempotencyConflict(`this Idempotency-Key was used with another root key, for ${targetId}`);
    }
    if (kept.requestDigest !== requestDigest) {
      throw new IdempotencyConflict("this Idempotency-Key was used for a different request");
    }
    return JSON.parse(answer) as Answer;
  }

  return {
    open,

    record(answer: Answer, command: Command, random: Random): IdempotencyRecord {
      const { atMs: createdAtMs } = command.event;
      const targetId = targetIdOf(command);
      const sealedAnswer = seal(sealingKey, random.bytes(nonceLength), JSON.stringify(answer));
      return { lookup, targetId, requestDigest, sealedAnswer, createdAtMs, expiresAtMs: createdAtMs + keptForMs };
    },

    /** The answer to an earlier request of the same kind, if there is one. */
    async find(management: Pick<Management, "read">, nowMs: number): Promise<Answer | undefined> {
      const kept = await management.read({ kind: "keptAnswer", lookup, nowMs });
      return kept && open(kept);
    },
  };
}

/** A request that may be repeated. */
interface Repeatable<Kept> extends Pick<Ambient, "random"> {
  readonly key: IdempotencyKey | undefined;
  /** As it came: what it means may change with time. */
  readonly request: object;
  /** What a repeated request has to know about the first one. */
  readonly kept?: Kept;
}

/**
 * Makes a change whose answer has no secret, once for each idempotency key. "repeated": it was made before by the same
 * request, which is answered with what is there now.
 */
export async function changeOnce<Made extends Command, Kept = null>(
  management: Pick<Management, "change">,
  command: Made,
  { key, request, random, kept }: Repeatable<Kept>,
): Promise<FirstOutcome<Made> | Repeated<Kept>> {
  const idempotency = key && createIdempotency<Kept | null>(key, request);
  const outcome = await management.change(command, idempotency?.record(kept ?? null, command, random));
  // Without a record nothing can be repeated.
  if (outcome.outcome !== "repeated" || idempotency === undefined) return outcome as FirstOutcome<Made>;
  const first = idempotency.open(outcome.record);
  return { outcome: "repeated", targetId: outcome.record.targetId, kept: first as Kept };
}

type FirstOutcome<Made extends Command> = Exclude<Outcome<Made["kind"]>, { outcome: "repeated" }>;

interface Repeated<Kept> {
  readonly outcome: "repeated";
  /** What the first request has made or changed. */
  readonly targetId: string;
  /** As the first request gave it. */
  readonly kept: Kept;
}

function opened(sealingKey: Uint8Array, sealed: string): string | undefined {
  try {
    return unseal(sealingKey, sealed);
  } catch {
    return undefined;
  }
}

/** The same text for the same request: the order of its fields does not matter. */
function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) =>
    inner !== null && typeof inner === "object" && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}
