import type { Ambient } from "../../ambient/ambient.ts";
import type { Clock } from "../../ambient/clock.ts";
import type { Log } from "../../ambient/log.ts";
import type { Metrics } from "../../ambient/metrics.ts";
import type { WindowTable } from "../../domain/window-table.ts";
import type { WindowListener } from "./window-counter.ts";
import { reportsMax, type SubjectReport, type WindowHub } from "./window-hub.ts";

/** Batches under way at once; what is urgent beyond them waits for the next tick. */
const batchesMax = 16;

interface WindowSyncDeps extends Pick<Ambient, "clock" | "log" | "metrics"> {
  readonly table: WindowTable;
  readonly hub: WindowHub;
  readonly replica: string;
}

/**
 * Keeps this replica's windows and the others' in step, in the background. A window is reported with the next tick
 * after it changed, or at once where that matters; never twice at the same time. What could not be sent, or came to
 * nothing, is sent later, as it is then: nothing queues but the numbers of changed windows.
 */
export class WindowSync implements WindowListener {
  readonly #table: WindowTable;
  readonly #hub: WindowHub;
  readonly #replica: string;
  readonly #clock: Clock;
  readonly #metrics: Metrics;
  readonly #log: Log;
  /** For the next tick; each slot at most once, in this list or the next one, as its mark says. */
  #changed: number[] = [];
  /** Those whose last report failed. While reports fail, a tick sends one batch of them, so that failing stays cheap. */
  #toRetry: number[] = [];
  #hasFailedSinceTick = false;
  /** Windows whose last report failed. */
  #failing = 0;
  /** Why, as far as the log has been told. */
  readonly #toldReasons = new Set<string>();
  #urgent: number[] = [];
  readonly #marks: Uint8Array;
  #batchesUnderWay = 0;
  #epoch: string | undefined;

  constructor(deps: WindowSyncDeps) {
    this.#table = deps.table;
    this.#hub = deps.hub;
    this.#replica = deps.replica;
    this.#clock = deps.clock;
    this.#metrics = deps.metrics;
    this.#log = deps.log;
    this.#marks = new Uint8Array(deps.table.slotsMax);
  }

  /** Whether the other replicas hear of every window. */
  get isUp(): boolean {
    return this.#hub.isWhole && this.#failing === 0;
  }

  changed(slot: number, urgent: boolean): void {
    const mark = this.#marks[slot] as number;
    if ((mark & isListed) === 0) {
      this.#changed.push(slot);
      this.#marks[slot] = mark | isListed;
    }
    if (!urgent || (mark & (isUrgent | isUnderWay | isFailing)) !== 0 || !this.#hub.isReachable) return;
    this.#marks[slot] = mark | isListed | isUrgent;
    this.#urgent.push(slot);
    // After the requests of this turn, which may make others urgent too.
    if (this.#urgent.length === 1) setImmediate(() => this.#sendUrgent());
  }

  /** Reports everything that has changed. Resolves when the answers are in, or will not come; never rejects. */
  async tick(): Promise<void> {
    if (!this.#hub.isReachable) return;
    const retried = this.#toRetry.splice(0, this.#hasFailedSinceTick ? reportsMax : this.#toRetry.length);
    this.#hasFailedSinceTick = false;
    const slots = retried.length === 0 ? this.#changed : [...retried, ...this.#changed];
    this.#changed = [];
    for (const slot of slots) this.#unmark(slot, isListed);
    const batches: Promise<void>[] = [];
    // An empty batch too: it asks whether the hub still knows what it was told.
    for (let i = 0; i === 0 || i < slots.length; i += reportsMax)
      batches.push(this.#send(slots.slice(i, i + reportsMax)));
    await Promise.all(batches);
  }

  #sendUrgent(): void {
    const slots = this.#urgent;
    this.#urgent = [];
    for (const slot of slots) this.#unmark(slot, isUrgent);
    for (let i = 0; i < slots.length && this.#batchesUnderWay < batchesMax; i += reportsMax) {
      void this.#send(slots.slice(i, i + reportsMax));
    }
  }

  async #send(slots: readonly number[]): Promise<void> {
    const sentAtMs = this.#clock.monotonicMs();
    const sent: (SubjectReport & { readonly slot: number })[] = [];
    for (const slot of slots) {
      const mark = this.#marks[slot] as number;
      if ((mark & isUnderWay) !== 0) {
        // One at a time: the answer on its way may already say what this report would ask.
        this.changed(slot, false);
        continue;
      }
      const report = this.#table.report(slot, this.#replica, sentAtMs);
      if (report === undefined) {
        this.#succeed(slot);
        continue;
      }
      this.#marks[slot] = mark | isUnderWay;
      sent.push({ slot, subject: this.#table.idOf(slot), apiId: this.#table.apiIdOf(slot), report });
    }
    this.#batchesUnderWay++;
    try {
      const { news, epoch, refusal } = await this.#hub.exchange(sent);
      const nowMs = this.#clock.monotonicMs();
      let failed = 0;
      sent.forEach(({ slot, subject, report }, i) => {
        this.#unmark(slot, isUnderWay);
        const told = news[i];
        if (told === undefined) {
          failed++;
          this.#fail(slot);
          return;
        }
        this.#succeed(slot);
        if (this.#table.idOf(slot) === subject) this.#table.learn(slot, report, told, sentAtMs, nowMs);
      });
      this.#metrics.windowsSynced("merged", sent.length - failed);
      if (failed > 0) this.#metrics.windowsSynced("failed", failed);
      if (failed > 0 && refusal !== undefined) this.#complain(refusal);
      if (epoch !== this.#epoch) this.#tellAgain(epoch);
    } catch {
      // The hub's own link says why, once. The windows stay as they are and are reported when it is back.
      for (const { slot } of sent) {
        this.#unmark(slot, isUnderWay);
        this.#fail(slot);
      }
      this.#metrics.windowsSynced("failed", sent.length);
    } finally {
      this.#batchesUnderWay--;
    }
  }

  /** To be reported again. */
  #fail(slot: number): void {
    this.#hasFailedSinceTick = true;
    const mark = this.#marks[slot] as number;
    if ((mark & isFailing) === 0) this.#failing++;
    if ((mark & isListed) === 0) this.#toRetry.push(slot);
    this.#marks[slot] = mark | isFailing | isListed;
  }

  #succeed(slot: number): void {
    if (((this.#marks[slot] as number) & isFailing) === 0) return;
    this.#unmark(slot, isFailing);
    this.#failing--;
    if (this.#failing > 0 || this.#toldReasons.size === 0) return;
    this.#toldReasons.clear();
    this.#log.info("all rate-limit windows are told to the other replicas again");
  }

  /** Each reason once, until all windows have been told again. */
  #complain(reason: string): void {
    if (this.#toldReasons.has(reason)) return;
    this.#toldReasons.add(reason);
    this.#log.warn("some rate-limit windows cannot be told to the other replicas", { reason });
  }

  /** The hub has lost its data. Reports all windows again, also those without new verifications. */
  #tellAgain(epoch: string): void {
    this.#epoch = epoch;
    for (const slot of this.#table.slotsInUse()) this.changed(slot, false);
  }

  #unmark(slot: number, mark: number): void {
    this.#marks[slot] = (this.#marks[slot] as number) & ~mark;
  }
}

/** What a slot's mark says of it. */
const isListed = 1;
const isUrgent = 2;
const isUnderWay = 4;
const isFailing = 8;
