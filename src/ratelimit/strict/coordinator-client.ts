import type { PermitAsk } from "../../domain/permit-window.ts";
import {
  type ExchangeOptions,
  notExecuted,
  type PermitAnswer,
  type PermitChannel,
} from "../exchange/permit-channel.ts";
import type { HubAnswer, KeyedReport, WindowHub } from "../local/window-hub.ts";
import { CoordinatorLink, type CoordinatorLinkOptions } from "./coordinator-link.ts";

/**
 * Several coordinators, of which each key prefers one, the same on every replica: there its asks from all regions meet.
 * When that one is away, silent, stops or has no ledger, another takes over; that costs speed, never correctness.
 */
export class CoordinatorClient implements PermitChannel {
  readonly #links: readonly Named[];

  constructor(addresses: readonly string[], options: Omit<CoordinatorLinkOptions, "address">) {
    // In the same order everywhere, whatever the order they were given in.
    this.#links = [...addresses]
      .sort()
      .map((address) => ({ address, link: new CoordinatorLink({ ...options, address }), epoch: "" }));
  }

  get isUp(): boolean {
    return this.#links.some(({ link }) => link.isUp);
  }

  /** Each of them, in the order of their addresses. */
  get links(): readonly { readonly address: string; readonly link: Pick<CoordinatorLink, "isUp" | "hasLedger"> }[] {
    return this.#links;
  }

  async exchange(keyId: string, ask: PermitAsk, { onOverdue }: ExchangeOptions = {}): Promise<PermitAnswer> {
    const preferred = this.#preferred(keyId, ({ link }) => link.hasLedger);
    return preferred?.link.exchange(keyId, ask, onOverdue) ?? notExecuted;
  }

  /** Where local limits are merged when there is no Redis. */
  asWindowHub(): WindowHub {
    const isUp = () => this.isUp;
    return {
      get isReachable() {
        return isUp();
      },
      // Any of them takes every report.
      get isWhole() {
        return isUp();
      },
      exchange: (reports) => this.#report(reports),
    };
  }

  close(): void {
    for (const { link } of this.#links) link.close();
  }

  /** Each report goes to its key's coordinator. Those whose coordinator fails come to nothing, the others do not. */
  async #report(reports: readonly KeyedReport[]): Promise<HubAnswer> {
    const indicesOf = new Map<Named, number[]>();
    // Without reports the question is whether they still know what they were told: a question to all of them.
    if (reports.length === 0) for (const named of this.#links) if (named.link.isUp) indicesOf.set(named, []);
    reports.forEach(({ keyId }, i) => {
      const named = this.#preferred(keyId, ({ link }) => link.isUp);
      if (named === undefined) return;
      indicesOf.set(named, [...(indicesOf.get(named) ?? []), i]);
    });
    const news: HubAnswer["news"][number][] = reports.map(() => undefined);
    const tell = async ([named, indices]: [Named, number[]]) => {
      const answer = await named.link.report(indices.map((i) => reports[i] as KeyedReport)).catch(() => undefined);
      named.epoch = answer?.epoch ?? named.epoch;
      indices.forEach((index, i) => {
        news[index] = answer?.news[i];
      });
    };
    await Promise.all([...indicesOf].map(tell));
    return { news, epoch: this.#links.map(({ epoch }) => epoch).join() };
  }

  /** The first that can be used, in the key's own order: highest random weight. */
  #preferred(keyId: string, isUsable: (named: Named) => boolean): Named | undefined {
    let best: Named | undefined;
    let bestWeight = -1;
    for (const named of this.#links) {
      const weight = isUsable(named) ? hash(`${named.address} ${keyId}`) : -1;
      if (weight > bestWeight) [best, bestWeight] = [named, weight];
    }
    return best;
  }
}

interface Named {
  readonly address: string;
  readonly link: CoordinatorLink;
  /** The last one it answered with. */
  epoch: string;
}

/** FNV-1a with a final mix: equal on every replica, and even in its high bits. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193);
  value = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35);
  return (value ^ (value >>> 16)) >>> 0;
}
