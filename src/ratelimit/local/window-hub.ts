import { mergeReport, type SharedWindow, type WindowNews, type WindowReport } from "../../domain/shared-window.ts";

/** Where replicas meet and merge what they have counted. Losing it costs accuracy, never a decision. */
export interface WindowHub {
  /** Whether reports can be sent at all just now. */
  readonly isReachable: boolean;
  /**
   * Merges the reports. Answers one piece of news per report, in order; undefined where a report came to nothing. Throws
   * when nothing is known of any: they may have been merged, and sending newer ones is harmless.
   */
  exchange(reports: readonly KeyedReport[]): Promise<HubAnswer>;
}

export interface KeyedReport {
  readonly keyId: string;
  readonly report: WindowReport;
}

export interface HubAnswer {
  readonly news: readonly (WindowNews | undefined)[];
  /** Another one than before: the hub has forgotten what it was told. */
  readonly epoch: string;
}

/** The hub's behaviour in its plainest form: what other hubs are measured against. */
export class MemoryHub implements WindowHub {
  readonly isReachable = true;
  readonly #nowMs: () => number;
  readonly #windows = new Map<string, SharedWindow>();
  #epoch = 0;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  async exchange(reports: readonly KeyedReport[]): Promise<HubAnswer> {
    const news = reports.map(({ keyId, report }) => {
      const merged = mergeReport(this.#windows.get(keyId), report, this.#nowMs());
      this.#windows.set(keyId, merged.window);
      return merged.news;
    });
    return { news, epoch: String(this.#epoch) };
  }

  forget(): void {
    this.#windows.clear();
    this.#epoch++;
  }
}
