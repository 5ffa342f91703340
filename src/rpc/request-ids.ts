import type { Ambient } from "../ambient/ambient.ts";
import { base62Alphabet } from "../domain/base62.ts";
import { formatId, idRandomLength } from "../domain/id.ts";

/** Ids of the same millisecond differ only in this: new random bytes for each id would cost more than everything else. */
const endings = Array.from(base62Alphabet, (first) => Array.from(base62Alphabet, (second) => first + second)).flat();

/** Creates an id for every request. */
export function createRequestIds({ clock, random }: Pick<Ambient, "clock" | "random">): () => string {
  let lead = "";
  let leadMs = Number.NaN;
  let used = 0;
  return () => {
    const nowMs = clock.nowMs();
    if (nowMs !== leadMs || used === endings.length) {
      lead = formatId("req", nowMs, random.bytes(idRandomLength)).slice(0, -2);
      leadMs = nowMs;
      used = 0;
    }
    return lead + endings[used++];
  };
}
