import type { ApiFields, KeyFields, OwnerFields, RootKeyFields } from "../../domain/resources.ts";
import type { ColumnsOf } from "./field-columns.ts";

/*
 * The tables as Kysely sees them. Only column types that behave the same on every engine are used: text, and integers up
 * to 2^53. Booleans are 0 or 1, times are Unix milliseconds, JSON and digests are text.
 */

/** What the row of every resource has beside the columns of its fields. */
interface Resource {
  id: string;
  created_at_ms: number;
  updated_at_ms: number;
  /** Counts its changes, its creation included. */
  version: number;
  /** Of the last change. Later statements of its transaction depend on it. */
  event_id: string;
}

export interface Schema {
  apis: ColumnsOf<ApiFields> &
    Resource & {
      /** 1 while its keys are being deleted: it takes no new ones. */
      is_deleting: number;
    };
  keys: ColumnsOf<KeyFields> &
    Resource & {
      /** SHA-256 of the key's secret. */
      digest: string;
      api_id: string;
      start: string;
      /** Whether the key has a row in `counters`: without one, look-ups need not search for it. */
      has_counter: number;
      /** When its secret was made: with the key, or when it was last rerolled. */
      secret_created_at_ms: number;
    };
  /** Secrets that were replaced and may be used until they expire: at most one of a key. */
  ending_secrets: { digest: string; key_id: string; start: string; created_at_ms: number; expires_at_ms: number };
  /** Records of owners. Keys name owners whether or not there is a record. */
  owners: ColumnsOf<OwnerFields> &
    Resource & {
      /** Lists are in its order: the id of the event by which the record was made. */
      list_id: string;
      /** The smallest of `api_ids`: whoever may see the owner may see this one. */
      first_api_id: string | null;
      /** Whether the owner has a row in `counters`. */
      has_counter: number;
    };
  /** What may still be used. A subject is the text under which something is counted: `src/domain/subject.ts`. */
  counters: {
    subject: string;
    remaining: number;
    refill_interval: string | null;
    refill_amount: number | null;
    refill_carry_over: number | null;
    refilled_through_ms: number | null;
  };
  /** The windows of strict limits, by subject too. A row is made when its subject gets a strict limit. */
  permit_windows: {
    subject: string;
    gen: number;
    ends_at_ms: number;
    /** The duration that the window was opened with. */
    window_duration_ms: number;
    /** The end that counts while the ledger's clock is behind; 0 while it is not. */
    clamped_ends_at_ms: number;
    granted: number;
    spent: number;
    contended: number;
    /** The limit and duration in force; null while the subject has no rate limit. */
    rule_limit: number | null;
    rule_duration_ms: number | null;
    /** The owner whose limit it is; null: that of a key, or a free-standing one. */
    owner_id: string | null;
  };
  root_keys: ColumnsOf<RootKeyFields> & Resource & { digest: string; start: string };
  /** One row for each change that was made by a root key. */
  events: {
    id: string;
    at_ms: number;
    /** As it is called in JSON, such as `keys.createKey`. */
    method: string;
    /** The id of the root key. */
    actor: string;
    target_id: string;
    /** The API that it concerns; null: it concerns the service. */
    api_id: string | null;
    /** A JSON array of all APIs that it concerns, where there can be several; then `api_id` is one of them. */
    api_ids: string | null;
    /** The names of the fields that changed, separated by commas. */
    fields: string;
    /** The target's, after the change. */
    version: number | null;
  };
  idempotency: {
    lookup: string;
    request_digest: string;
    sealed_answer: string;
    target_id: string;
    expires_at_ms: number;
  };
  /** The change feed. */
  changes: {
    /** The transaction that made the change. */
    transaction_id: number;
    /** `key`, `owner`, `newOwner`, `rootKeys` or `everything`. */
    kind: string;
    /** The id of the key or owner. */
    target_id: string | null;
    /** Of the key's secrets, separated by commas. */
    digests: string | null;
  };
  /** One row, about the feed as a whole. */
  change_feed: { slot: number; epoch: string; tidied_before: number; has_imported_keys: number };
  /** See `unfinished-copy.ts`. Only a target has more than the id. */
  unfinished_copy: {
    slot: number;
    id: string;
    source: string | null;
    copied_table: string | null;
    copied_through: string | null;
  };
  schema_migrations: { name: string; applied_at_ms: number };
}

/* The names of constraints, by which a change that one of them refuses is recognised. */
export const hasCounterCheck = "keys_has_counter_check";
export const ownerHasCounterCheck = "owners_has_counter_check";
export const remainingMinCheck = "counters_remaining_min_check";
export const remainingMaxCheck = "counters_remaining_max_check";
