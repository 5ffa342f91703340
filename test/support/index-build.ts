import { expect } from "vitest";
import type { IndexMigration } from "../../src/store/sql/migrations.ts";
import { query } from "./run-statement.ts";

/* An index that is built on a table with many rows while a service runs on it. */

/** On the table that verifications of keys with a counter write to. */
export const usageIndex: IndexMigration = {
  name: "9999-index",
  index: { name: "counters_by_refill", table: "counters", columns: ["refilled_through_ms DESC", "subject"] },
};

/** The same index as a statement that lets no transaction write to the table meanwhile. */
export const plainIndexText = "CREATE INDEX plain ON counters (refilled_through_ms DESC, subject)";

/** Adds keys with counters that are like this one. */
export async function addKeysLike(url: string, keyId: string, keys: number): Promise<void> {
  const others = (table: string, changed: string, id: string) =>
    `INSERT INTO ${table} SELECT r.* FROM ${table} t, generate_series(1, ${keys}) n,
      LATERAL jsonb_populate_record(t, jsonb_build_object(${changed})) r WHERE t.${id} = '${keyId}'`;
  await query(url, others("keys", "'digest', 'bulk ' || n, 'id', 'bulk_' || n", "id"));
  await query(url, others("counters", "'subject', 'bulk_' || n", "subject"));
}

export interface LoadFigures {
  /** Verifications that were answered as they must be. */
  verified: number;
  /** Changes of keys likewise. */
  changed: number;
  /** All other answers, each sort with its number. */
  failed: Record<string, number>;
  /** The longest that a verification took. */
  slowestMs: number;
}

interface LoadOptions {
  readonly baseUrl: string;
  readonly rootKey: string;
  readonly callers: number;
}

const keysUsed = 40;

/**
 * Verifies keys with a counter from several callers, and creates and changes others, for as long as the work takes. Each
 * key's counter must be down by what was verified at the end.
 */
export async function loadDuring(
  { baseUrl, rootKey, callers }: LoadOptions,
  work: () => Promise<unknown>,
): Promise<LoadFigures> {
  const figures: LoadFigures = { verified: 0, changed: 0, failed: {}, slowestMs: 0 };
  const fail = (what: string) => {
    figures.failed[what] = (figures.failed[what] ?? 0) + 1;
  };
  const call = async (method: string, body: object) => {
    const headers = { authorization: `Bearer ${rootKey}`, "content-type": "application/json" };
    const options = { method: "POST", headers, body: JSON.stringify(body) };
    const response = await fetch(`${baseUrl}/v1/keys.${method}`, options).catch(() => undefined);
    const answer = (await response?.json().catch(() => undefined)) as Record<string, unknown> | undefined;
    return { status: response?.status ?? 0, answer };
  };
  const create = async () => (await call("createKey", { apiId: "load", remaining: 1_000_000 })).answer;
  const keys = (await Promise.all(Array.from({ length: keysUsed }, create))) as { key: string; keyId: string }[];
  const used = new Map<string, number>();
  let isOver = false;
  const verify = async (caller: number) => {
    for (let turn = caller; !isOver; turn++) {
      const { key, keyId } = keys[turn % keys.length] as { key: string; keyId: string };
      const startMs = performance.now();
      const { status, answer } = await call("verifyKey", { key });
      figures.slowestMs = Math.max(figures.slowestMs, Math.round(performance.now() - startMs));
      if (status === 200 && answer?.code === "VALID") {
        figures.verified++;
        used.set(keyId, (used.get(keyId) ?? 0) + 1);
      } else fail(`verifyKey ${status}`);
    }
  };
  const change = async () => {
    while (!isOver) {
      const created = await call("createKey", { apiId: "load", remaining: 5 });
      const keyId = created.answer?.keyId;
      const raised = await call("updateRemaining", { keyId, op: "increment", value: 1 });
      if (created.status === 200 && raised.status === 200) figures.changed += 2;
      else fail(`createKey ${created.status}, updateRemaining ${raised.status}`);
    }
  };
  const loads = [...Array.from({ length: callers }, (_, caller) => verify(caller)), change()];
  try {
    await work();
  } finally {
    isOver = true;
    await Promise.all(loads);
  }
  if (Object.keys(figures.failed).length === 0) {
    const left = await Promise.all(keys.map(({ keyId }) => call("getKey", { keyId })));
    const spent = keys.map(({ keyId }) => used.get(keyId) ?? 0);
    expect(left.map(({ answer }) => 1_000_000 - Number(answer?.remaining))).toEqual(spent);
  }
  return figures;
}
