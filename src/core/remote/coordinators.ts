import { Unavailable } from "../../domain/unavailable.ts";
import { NotExecuted, type Question, type ReceivedAnswer } from "../wire.ts";
import { type CallOptions, CoordinatorLink, type CoordinatorLinkOptions } from "./coordinator-link.ts";

/**
 * Several coordinators, of which each key prefers one, the same on every edge: there its calls from all regions meet.
 * When that one is away, silent, stops or has no ledger, another takes over; that costs speed, never correctness.
 */
export class Coordinators {
  readonly links: readonly NamedLink[];

  constructor(addresses: readonly string[], options: Omit<CoordinatorLinkOptions, "address">) {
    // In the same order everywhere, whatever the order they were given in.
    this.links = [...addresses]
      .sort()
      .map((address) => ({ address, link: new CoordinatorLink({ ...options, address }) }));
  }

  get isUp(): boolean {
    return this.links.some(({ link }) => link.isUp);
  }

  get hasLedger(): boolean {
    return this.links.some(({ link }) => link.hasLedger);
  }

  /** The longest path that is in use: no deadline is too early for one of the coordinators. */
  get pathMs(): number {
    let longestMs = 0;
    for (const { link } of this.links) if (link.hasLedger) longestMs = Math.max(longestMs, link.pathMs);
    return longestMs;
  }

  /**
   * Makes a call once. Rejects with `NotExecuted` if it was not sent and never will be, and with `Unavailable` if its
   * outcome is unknown: then it must not be made again, unless it only reads.
   */
  callOnce(key: string, question: Question, options?: CallOptions): Promise<ReceivedAnswer> {
    const link = this.preferred(key, (link) => link.hasLedger)?.link;
    if (link === undefined) return Promise.reject(new NotExecuted("no coordinator with a ledger can be reached"));
    return link.call(question, options);
  }

  /** As `callOnce`, but goes on to another coordinator as long as the call was not sent. Rejects with `Unavailable`. */
  async call(key: string, question: Question, options?: CallOptions): Promise<ReceivedAnswer> {
    // Each link can reject it unsent once: then it is not usable for the next call.
    for (let tries = 0; tries <= this.links.length; tries++) {
      try {
        return await this.callOnce(key, question, options);
      } catch (error) {
        if (!(error instanceof NotExecuted)) throw error;
      }
    }
    throw new Unavailable("no coordinator with a ledger can be reached", { nothingDone: true });
  }

  /**
   * For a call that only reads: it is made again at the next coordinator when one is in doubt, has gone, has failed or does
   * not know such a call. The last answer counts, whatever it is.
   */
  async read(key: string, question: Question): Promise<ReceivedAnswer> {
    const asked = new Set<CoordinatorLink>();
    const next = () => this.preferred(key, (link) => link.hasLedger && !asked.has(link))?.link;
    for (let link = next(); link !== undefined; link = next()) {
      asked.add(link);
      const inDoubt = Promise.withResolvers<undefined>();
      const called = link.call(question, { onOverdue: () => inDoubt.resolve(undefined) });
      const answer = await Promise.race([called, inDoubt.promise]).catch(() => undefined);
      const isAnswered = answer !== undefined && !isOutage(answer);
      // From the last coordinator, a late answer or a failure counts too.
      if (isAnswered || next() === undefined) return called;
    }
    throw new Unavailable("no coordinator with a ledger can be reached", { nothingDone: true });
  }

  close(): void {
    for (const { link } of this.links) link.close();
  }

  /** The first that can be used, in the key's own order: highest random weight. */
  preferred(key: string, isUsable: (link: CoordinatorLink) => boolean): NamedLink | undefined {
    let best: NamedLink | undefined;
    let bestWeight = -1;
    for (const named of this.links) {
      const weight = isUsable(named.link) ? hash(`${named.address} ${key}`) : -1;
      if (weight > bestWeight) [best, bestWeight] = [named, weight];
    }
    return best;
  }
}

/** Whether another coordinator may have an answer. */
function isOutage(answer: ReceivedAnswer): boolean {
  if (answer.case === "failure" || answer.case === "unknown") return true;
  const result = answer.case === "management" ? answer.value.result : undefined;
  return result?.case === "error" && result.value.code === "SERVICE_UNAVAILABLE";
}

export interface NamedLink {
  readonly address: string;
  readonly link: CoordinatorLink;
}

/** FNV-1a with a final mix: equal on every edge, and even in its high bits. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193);
  value = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35);
  return (value ^ (value >>> 16)) >>> 0;
}
