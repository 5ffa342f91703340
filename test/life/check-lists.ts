import type { KeyRecord, Problem } from "./key-record.ts";
import { bodyOf, type History } from "./operations.ts";

/** A listing has every key that was there all the time, and none that was made later or was gone before. */
export function checkLists(records: readonly KeyRecord[], { calls }: History): Problem[] {
  const problems: Problem[] = [];
  for (const call of calls) {
    const listed = bodyOf(call, "listKeys")?.keys;
    if (listed === undefined) continue;
    const ids = listed.map(({ keyId }) => keyId);
    if (new Set(ids).size !== ids.length)
      problems.push({ rule: "lists", keyId: "", text: "a key twice", calls: [call] });
    for (const { keyId, made, deletions } of records) {
      const isThere = made.endMs < call.startMs && deletions.every(({ startMs }) => startMs > call.endMs);
      if (isThere && !ids.includes(keyId)) {
        problems.push({ rule: "lists", keyId, text: "not in a list", calls: [made, call] });
      }
    }
  }
  return problems;
}
