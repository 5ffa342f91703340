import type { PermitAsk } from "../../domain/permit-window.ts";
import type { OnRecall } from "../permit-channel.ts";

/** Keys whose holders are remembered. What is forgotten costs a recall, nothing else. */
const subjectsMax = 100_000;

/** Who holds how many permits of which subject, as far as went through here. */
export class Holders {
  /** In the order of their last use: the first is the first to go. */
  readonly #subjects = new Map<string, Holding>();

  /** How many replicas share the subject, including those that ask now. */
  count(subject: string, asking: readonly Member[]): number {
    const members = new Set(asking);
    for (const member of this.#subjects.get(subject)?.held.keys() ?? []) members.add(member);
    return members.size;
  }

  /** What the others hold in this window. */
  others(subject: string, except: readonly Member[]): Member[] {
    const held = [...(this.#subjects.get(subject)?.held ?? [])];
    return held.filter(([member, permits]) => permits > 0 && !except.includes(member)).map(([member]) => member);
  }

  note(subject: string, member: Member, gen: number, ask: PermitAsk, granted: number): void {
    const before = this.#subjects.get(subject);
    // With a new window all held permits are worthless. Replicas that want new ones ask.
    const holding = before?.gen === gen ? before : { gen, held: new Map<Member, number>() };
    const kept = ask.gen === gen ? (holding.held.get(member) ?? 0) - ask.returned - ask.spent : 0;
    holding.held.set(member, Math.max(0, kept) + granted);
    this.#subjects.delete(subject);
    this.#subjects.set(subject, holding);
    if (this.#subjects.size > subjectsMax) this.forget(this.#subjects.keys().next().value as string);
  }

  forget(subject: string): void {
    this.#subjects.delete(subject);
  }

  leave(member: Member): void {
    for (const { held } of this.#subjects.values()) held.delete(member);
  }
}

/** A replica, as a coordinator knows it. */
export interface Member {
  readonly onRecall: OnRecall;
  /** Whether its stream is closed: no answer can reach it. */
  isGone: boolean;
}

interface Holding {
  readonly gen: number;
  readonly held: Map<Member, number>;
}
