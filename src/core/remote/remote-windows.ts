import {
  exchangeWithEach,
  type HubAnswer,
  type SubjectReport,
  type WindowHub,
} from "../../ratelimit/local/window-hub.ts";
import { requireAnswer } from "../wire.ts";
import { fromWireWindows, toWireReports } from "../wire-windows.ts";
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
    const preferred = reports.map(({ subject }) => this.#coordinators.preferred(subject, (link) => link.isUp));
    const asked = reports.length === 0 ? links.filter(({ link }) => link.isUp) : preferred;
    const { news, refusal } = await exchangeWithEach(reports, asked, async (named, sent) => {
      const answer = fromWireWindows(requireAnswer(await named.link.call(toWireReports(sent)), "windows"));
      this.#epochs.set(named, answer.epoch);
      return answer;
    });
    return { news, epoch: links.map((each) => this.#epochs.get(each) ?? "").join(), refusal };
  }
}
