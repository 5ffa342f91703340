import type { HubAnswer, SubjectReport, WindowHub } from "../../ratelimit/local/window-hub.ts";
import { answerOf } from "../wire.ts";
import { fromWireWindows, toWireReports } from "../wire-windows.ts";
import type { CoordinatorLink } from "./coordinator-link.ts";
import type { Coordinators, NamedLink } from "./coordinators.ts";

/** Where local windows are merged when there is no Redis: each key's at its own coordinator, which needs no ledger for it. */
export class RemoteWindows implements WindowHub {
  readonly #coordinators: Coordinators;
  /** The last one that each coordinator answered with. */
  readonly #epochs = new Map<NamedLink, string>();

  constructor(coordinators: Coordinators) {
    this.#coordinators = coordinators;
  }

  get isReachable(): boolean {
    return this.#coordinators.isUp;
  }

  /** Any of them takes every report. */
  get isWhole(): boolean {
    return this.#coordinators.isUp;
  }

  /** Each report goes to its key's coordinator. Those whose coordinator fails come to nothing, the others do not. */
  async exchange(reports: readonly SubjectReport[]): Promise<HubAnswer> {
    const { links } = this.#coordinators;
    const indicesOf = new Map<NamedLink, number[]>();
    // Without reports the question is whether they still know what they were told: a question to all of them.
    if (reports.length === 0) for (const named of links) if (named.link.isUp) indicesOf.set(named, []);
    reports.forEach(({ subject }, i) => {
      const named = this.#coordinators.preferred(subject, (link) => link.isUp);
      if (named === undefined) return;
      const indices = indicesOf.get(named) ?? [];
      indices.push(i);
      indicesOf.set(named, indices);
    });
    const news: HubAnswer["news"][number][] = reports.map(() => undefined);
    let refusal: string | undefined;
    const tell = async ([named, indices]: [NamedLink, number[]]) => {
      const told = indices.map((i) => reports[i] as SubjectReport);
      const answer = await report(named.link, told).catch(() => undefined);
      if (answer !== undefined) this.#epochs.set(named, answer.epoch);
      refusal ??= answer?.refusal;
      indices.forEach((index, i) => {
        news[index] = answer?.news[i];
      });
    };
    await Promise.all([...indicesOf].map(tell));
    return { news, epoch: links.map((named) => this.#epochs.get(named) ?? "").join(), refusal };
  }
}

async function report(link: CoordinatorLink, reports: readonly SubjectReport[]): Promise<HubAnswer> {
  return fromWireWindows(answerOf(await link.call(toWireReports(reports)), "windows"));
}
