import { mergeReport, type SharedWindow, type WindowNews, type WindowReport } from "../../domain/shared-window.ts";

/** Where replicas meet and merge what they have counted. Losing it costs accuracy, never a decision. */
export interface WindowHub {
  /** Whether reports can be sent at all just now. */
  readonly isReachable: boolean;
  /** Whether every report could be sent: of several servers none is away. */
  readonly isWhole: boolean;
  /**
   * Merges the reports. Answers one piece of news per report, in order; undefined where a report came to nothing. Throws
   * when nothing is known of any: they may have been merged, and sending newer ones is harmless.
   */
  exchange(reports: readonly SubjectReport[]): Promise<HubAnswer>;
}

export interface SubjectReport {
  readonly subject: string;
  readonly report: WindowReport;
}

export interface HubAnswer {
  readonly news: readonly (WindowNews | undefined)[];
  /** Another one than before: the hub has forgotten what it was told. */
  readonly epoch: string;
  /** Why some reports came to nothing, in a word, where the hub has answered them. */
  readonly refusal?: string | undefined;
}

/** Windows looked at, with each exchange, for whether they are over. */
const sweptPerExchange = 100;

/** Replicas meet in the memory of a coordinator. */
export class MemoryHub implements WindowHub {
  readonly isReachable = true;
  readonly isWhole = true;
  readonly #nowMs: () => number;
  readonly #windows = new Map<string, SharedWindow>();
  #sweep = this.#windows.entries();
  #epoch: string;

  /** `epoch` is another one with every start. */
  constructor(nowMs: () => number, epoch = "") {
    this.#nowMs = nowMs;
    this.#epoch = epoch;
  }

  async exchange(reports: readonly SubjectReport[]): Promise<HubAnswer> {
    const nowMs = this.#nowMs();
    const news = reports.map(({ subject, report }) => {
      const merged = mergeReport(this.#windows.get(subject), report, nowMs);
      this.#windows.set(subject, merged.window);
      return merged.news;
    });
    this.#forgetOver(nowMs, reports.length + sweptPerExchange);
    return { news, epoch: this.#epoch };
  }

  forget(): void {
    this.#windows.clear();
    this.#epoch += "'";
  }

  #forgetOver(nowMs: number, looks: number): void {
    for (let i = 0; i < looks; i++) {
      const next = this.#sweep.next();
      if (next.done) {
        this.#sweep = this.#windows.entries();
        return;
      }
      const [subject, { endsAtMs }] = next.value;
      if (endsAtMs <= nowMs) this.#windows.delete(subject);
    }
  }
}
