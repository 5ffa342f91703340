import { mergeReport, type SharedWindow, type WindowNews, type WindowReport } from "../../domain/shared-window.ts";
import { type ApiShare, WindowPlaces } from "../../domain/window-places.ts";

/** An exchange has at most so many reports. */
export const reportsMax = 500;

/** Where replicas meet and merge what they have counted. Losing it costs accuracy, never a decision. */
export interface WindowHub {
  /** Whether any report can be sent now. */
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
  /** It changes when the hub has lost the reports. */
  readonly epoch: string;
  /** Why some reports came to nothing, in a word, where the hub has answered them. */
  readonly refusal?: string | undefined;
}

/**
 * Sends each report to its server, and puts the answers together. Reports without a server, or whose server fails, come to
 * nothing. Without reports, all servers given are asked whether they still have the earlier ones.
 */
export async function exchangeWithEach<Server>(
  reports: readonly SubjectReport[],
  servers: readonly (Server | undefined)[],
  exchange: (server: Server, reports: readonly SubjectReport[]) => Promise<Omit<HubAnswer, "epoch">>,
) {
  const indicesOf = Map.groupBy(servers.keys(), (i) => servers[i]);
  indicesOf.delete(undefined);
  const news: HubAnswer["news"][number][] = reports.map(() => undefined);
  const failures: unknown[] = [];
  let refusal: string | undefined;
  const exchanges = [...indicesOf].map(async ([server, indices]) => {
    try {
      const sent = indices.flatMap((i) => reports[i] ?? []);
      const answer = await exchange(server as Server, sent);
      refusal ??= answer.refusal;
      answer.news.forEach((each, i) => {
        news[indices[i] as number] = each;
      });
    } catch (error) {
      failures.push(error);
    }
  });
  await Promise.all(exchanges);
  return { news, refusal, failures, asked: exchanges.length };
}

export interface MemoryHubOptions {
  readonly nowMs: () => number;
  /** Windows of keys and owners at most. */
  readonly windowsMax: number;
  /** For free-standing subjects, besides those for all others. */
  readonly freeStandingMax: number;
  /** It changes with every start. */
  readonly epoch?: string;
}

/** Replicas that count in one window at most: as many as can be connected. */
const replicasMax = 1000;
/** How often it removes windows that are over. Each sweep checks a twentieth of all windows, at least this many. */
const sweepEveryMs = 100;
const sweepMin = 1000;

/**
 * A hub in the memory of a coordinator. It holds a bounded number of windows, of which an API has a part as in the
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
  readonly #epoch: string;

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
    for (let left = Math.max(sweepMin, Math.ceil(this.#windows.size / 20)); left > 0; left--) {
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
