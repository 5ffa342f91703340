import type { PermitAsk } from "../../domain/permit-window.ts";

/**
 * Many replicas' asks for one subject as one. Returns and reports of the newest window count; those of older ones are for a
 * window that is over, and are dropped as the ledger would drop them.
 */
export function mergeAsks(asks: readonly PermitAsk[], holders: number): PermitAsk {
  const gen = Math.max(...asks.map((ask) => ask.gen));
  const merged = { wantMin: 0, wantMax: 0, gen, returned: 0, spent: 0, holders };
  for (const ask of asks) {
    merged.wantMin += ask.wantMin;
    merged.wantMax += ask.wantMax;
    if (ask.gen !== gen) continue;
    merged.returned += ask.returned;
    merged.spent += ask.spent;
  }
  return merged;
}

/** Splits the granted permits: first to asks with waiting requests, in order; the rest evenly, up to what each wants. */
export function shareOut(asks: readonly PermitAsk[], granted: number): number[] {
  let left = granted;
  const shares = asks.map((ask) => {
    const share = Math.min(left, ask.wantMin);
    left -= share;
    return share;
  });
  // What one does not want goes to the others; so it ends, at the latest, when one after the other has enough.
  for (let unserved = asks.length; left > 0 && unserved > 0; ) {
    const each = Math.max(1, Math.floor(left / unserved));
    unserved = 0;
    asks.forEach((ask, i) => {
      const more = Math.min(left, each, ask.wantMax - (shares[i] as number));
      shares[i] = (shares[i] as number) + more;
      left -= more;
      if (ask.wantMax > (shares[i] as number)) unserved++;
    });
  }
  return shares;
}
