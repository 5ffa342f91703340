import type { Clock } from "../ambient/clock.ts";
import type { Random } from "../ambient/random.ts";
import { formatId, idRandomLength } from "../domain/id.ts";

/** Chance for so many ids is fetched at once: an array for each would cost more than the id. */
const idsAtOnce = 100;

/** Makes an id for every request. */
export function createRequestIds({ clock, random }: { clock: Clock; random: Random }): () => string {
  let bytes = new Uint8Array(0);
  let used = 0;
  return () => {
    if (used === bytes.length) {
      bytes = Uint8Array.from(random.bytes(idsAtOnce * idRandomLength));
      used = 0;
    }
    used += idRandomLength;
    return formatId("req", clock.nowMs(), bytes, used - idRandomLength);
  };
}
