/** What one verification takes. All are whole numbers from 0 on; 0 takes nothing. */
export interface Costs {
  /** From each counter. */
  readonly counter: number;
  /** From the limit that has no name. */
  readonly unnamed: number;
  /** From limits by their names, each once: 1 from those that are not in it. Few enough to be searched. */
  readonly named: readonly NamedCost[];
}

export interface NamedCost {
  readonly name: string;
  /** By default 1. */
  readonly cost?: number | undefined;
}

/** For a request that names no costs. */
export const costsOfOne: Costs = { counter: 1, unnamed: 1, named: [] };

/** What the verification takes from a limit; undefined is the limit that has no name. */
export function costOf({ unnamed, named }: Costs, name: string | undefined): number {
  if (name === undefined) return unnamed;
  for (const each of named) if (each.name === name) return each.cost ?? 1;
  return 1;
}

/** A cost is higher than the key allows: a mistake of the caller, not a refusal of the key. */
export class CostTooHigh extends Error {
  override readonly name = "CostTooHigh";
  /** The JSON path of the cost. */
  readonly path: string;

  constructor(path: string, costMax: number) {
    super(`must be at most ${costMax}, the costMax of the key`);
    this.path = path;
  }
}

/** Throws `CostTooHigh`. */
export function checkCosts({ counter, unnamed, named }: Costs, costMax: number): void {
  if (counter > costMax) throw new CostTooHigh("remaining.cost", costMax);
  if (unnamed > costMax) throw new CostTooHigh("ratelimit.cost", costMax);
  named.forEach(({ cost = 1 }, i) => {
    if (cost > costMax) throw new CostTooHigh(`ratelimits[${i}].cost`, costMax);
  });
}
