import type { LaneItem } from "./guarded-statement.ts";

export interface Parts {
  /** Every subject that an item names, once. The other fields are in the order of this one. */
  readonly subjects: readonly string[];
  /** The number of each subject's part. */
  readonly parts: readonly number[];
  /** Its place in the part, from 1. */
  readonly slots: readonly number[];
  /** The position of each subject in `subjects`. */
  readonly positions: ReadonlyMap<string, number>;
}

/** Divides the subjects of a batch into parts: two subjects that one item names are in the same part. */
export function partsOf(items: readonly LaneItem[]): Parts {
  const positions = new Map<string, number>();
  /** Leads from each subject to the representative of its part, which leads to itself. */
  const parents: number[] = [];
  const positionOf = (subject: string): number => {
    let position = positions.get(subject);
    if (position === undefined) {
      position = parents.length;
      positions.set(subject, position);
      parents.push(position);
    }
    return position;
  };
  const representative = (position: number): number => {
    let at = position;
    while (parents[at] !== at) {
      // Halves the path for the next time.
      parents[at] = parents[parents[at] as number] as number;
      at = parents[at] as number;
    }
    return at;
  };
  for (const { subject, shared } of items) {
    const own = positionOf(subject);
    if (shared !== undefined) parents[representative(own)] = representative(positionOf(shared));
  }
  const sizes = new Map<number, number>();
  const parts = parents.map((_, position) => representative(position));
  const slots = parts.map((part) => {
    const slot = (sizes.get(part) ?? 0) + 1;
    sizes.set(part, slot);
    return slot;
  });
  return { subjects: [...positions.keys()], parts, slots, positions };
}
