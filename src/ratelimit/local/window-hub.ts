import { mergeReport, type SharedWindow, type WindowNews, type WindowReport } from "../../domain/shared-window.ts";
import { type ApiShare, WindowPlaces } from "../../domain/window-places.ts";

/** An exchange has at most so many reports. */
export const reportsMax = 500;

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
  /** The API that the window counts for; undefined: none was named. */
  readonly apiId?: string | undefined;
  readonly report: WindowReport;
}

export interface HubAnswer {
  readonly news: readonly (WindowNews | undefined)[];
  /** Another one than before: the hub has forgotten what it was told. */
  readonly epoch: string;
  /** Why some reports came to nothing, in a word, where the hub has answered them. */
  readonly refusal?: string | undefined;
}

export interface MemoryHubOptions {
  readonly nowMs: () => number;
  /** Windows of keys and owners at most. */
  readonly windowsMax: number;
  /** For free-standing subjects, besides those for all others. */
  readonly freeStandingMax: number;
  /** Another one with every start. */
  readonly epoch?: string;
}

/** Replicas that count in one window at most: as many as can be connected. */
const replicasMax = 1000;
/** How often it looks for windows that are over: at a twentieth of all that it has, or at this many. */
const sweepEveryMs = 100;
const sweepMin = 1000;

/**
 * Replicas meet in the memory of a coordinator. It holds a bounded number of windows, of which an API has a part as in the
 * tables of replicas. A report that finds no place comes to nothing: its replica goes on counting by itself. Windows that are
 * known are merged as ever, and those that are over make room.
 */
export class MemoryHub implements WindowHub {
  readonly isReachable = true;
  readonly isWhole = true;
  readonly #nowMs: () => number;
  readonly #places: WindowPlaces;
  readonly #windows = new Map<string, SharedWindow & { readonly share: ApiShare }>();
  #sweep = this.#windows.entries();
  #sweptAtMs = Number.NEGATIVE_INFINITY;
  #epoch: string;

  constructor({ nowMs, windowsMax, freeStandingMax, epoch = "" }: MemoryHubOptions) {
    this.#nowMs = nowMs;
    this.#places = new WindowPlaces(windowsMax, freeStandingMax);
    this.#epoch = epoch;
  }

  async exchange(reports: readonly SubjectReport[]): Promise<HubAnswer> {
    const nowMs = this.#nowMs();
    this.#sweepIfDue(nowMs);
    const news = reports.map((each) => this.#merge(each, nowMs));
    return { news, epoch: this.#epoch, refusal: news.includes(undefined) ? "the coordinator is full" : undefined };
  }

  forget(): void {
    for (const subject of this.#windows.keys()) this.#delete(subject);
    this.#epoch += "'";
  }

  #merge({ subject, apiId, report }: SubjectReport, nowMs: number): WindowNews | undefined {
    const known = this.#windows.get(subject);
    const { window, news } = mergeReport(known, report, nowMs);
    if (window.counts.size > replicasMax) return undefined;
    const share = known?.share ?? this.#places.for(subject).take(apiId);
    if (share === undefined) return undefined;
    this.#windows.set(subject, { ...window, share });
    return news;
  }

  #sweepIfDue(nowMs: number): void {
    if (nowMs - this.#sweptAtMs < sweepEveryMs) return;
    this.#sweptAtMs = nowMs;
    for (let looks = Math.max(sweepMin, Math.ceil(this.#windows.size / 20)); looks > 0; looks--) {
      const next = this.#sweep.next();
      if (next.done) {
        this.#sweep = this.#windows.entries();
        return;
      }
      const [subject, { endsAtMs }] = next.value;
      if (endsAtMs <= nowMs) this.#delete(subject);
    }
  }

  #delete(subject: string): void {
    const share = this.#windows.get(subject)?.share;
    share?.places.release(share);
    this.#windows.delete(subject);
  }
}
