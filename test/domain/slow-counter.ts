export interface Rule {
  readonly interval: "daily" | "monthly";
  readonly amount: number;
  readonly carryOver: boolean;
}

export interface Answer {
  readonly granted: number;
  readonly remaining: number;
}

/** A counter under test. */
export interface Subject {
  spend(wanted: number, now: Date): Answer;
}

/**
 * The documented behaviour in the most obvious form: it walks through the calendar night by night and writes
 * down each boundary that it has refilled at. It shares no code with the product.
 */
export class SlowCounter implements Subject {
  readonly #rule: Rule;
  readonly #createdAt: Date;
  readonly #refilledAt = new Set<string>();
  #lastSeen: Date;
  #remaining: number;

  constructor(rule: Rule, remaining: number, createdAt: Date) {
    this.#rule = rule;
    this.#remaining = remaining;
    this.#createdAt = createdAt;
    this.#lastSeen = createdAt;
  }

  spend(wanted: number, now: Date): Answer {
    for (const midnight of midnightsBetween(this.#lastSeen, now)) {
      if (this.#rule.interval === "monthly" && midnight.getUTCDate() !== 1) continue;
      if (midnight <= this.#createdAt) continue;
      if (this.#refilledAt.has(midnight.toISOString())) continue;
      this.#refilledAt.add(midnight.toISOString());
      this.#refillOnce();
    }
    this.#lastSeen = now;
    let granted = 0;
    while (granted < wanted && this.#remaining > 0) {
      this.#remaining--;
      granted++;
    }
    return { granted, remaining: this.#remaining };
  }

  #refillOnce(): void {
    const { amount, carryOver } = this.#rule;
    if (carryOver) this.#remaining += amount;
    else if (this.#remaining < amount) this.#remaining = amount;
    if (this.#remaining > 2_147_483_647) this.#remaining = 2_147_483_647;
  }
}

/** Every midnight from the day of `from` on, up to and including `to`. None when `to` is on an earlier day. */
function midnightsBetween(from: Date, to: Date): Date[] {
  const midnights: Date[] = [];
  const midnight = new Date(from);
  midnight.setUTCHours(0, 0, 0, 0);
  while (midnight <= to) {
    midnights.push(new Date(midnight));
    midnight.setUTCDate(midnight.getUTCDate() + 1);
  }
  return midnights;
}
