import type { Ambient } from "../../ambient/ambient.ts";
import { Troubles } from "../../ambient/troubles.ts";
import type { WindowTable } from "../../domain/window-table.ts";
import type { WindowListener } from "./local-limiter.ts";
import { reportsMax, type SubjectReport, type WindowHub } from "./window-hub.ts";

/** Batches under way at the same time; what is urgent beyond them waits for the next tick. */
const batchesMax = 16;

interface WindowSyncDeps extends Pick<Ambient, "clock" | "log" | "metrics"> {
  readonly table: WindowTable;
  readonly hub: WindowHub;
  readonly replica: string;
}

/**
 * Keeps this replica's windows and the others' in step, in the background. A window is reported with the next tick
 * after it changed, or immediately where that matters; never twice at the same time. What could not be sent, or came to
 * nothing, is sent later, as it is then: nothing queues but the numbers of changed windows.
 */
export class WindowSync implements WindowListener {
  readonly #deps: WindowSyncDeps;
  /** For the next tick; each slot at most once, in this list or the next one, as its mark says. */
  #changed: number[] = [];
  /** Those whose last report failed. While reports fail, a tick sends one batch of them, so that failing stays cheap. */
  #toRetry: number[] = [];
  #hasFailedSinceTick = false;
  /** Windows whose last report failed. */
  #failing = 0;
  readonly #troubles: Troubles;
  #urgent: number[] = [];
  readonly #marks: Uint8Array;
  #batchesUnderWay = 0;
  #epoch: string | undefined;

  constructor(deps: WindowSyncDeps) {
    this.#deps = deps;
    this.#troubles = new Troubles(deps.log);
    this.#marks = new Uint8Array(deps.table.slotsMax);
  }

  /** Whether every window is reported to the other replicas. */
  get isUp(): boolean {
    return this.#deps.hub.isWhole && this.#failing === 0;
  }

  changed(slot: number, urgent: boolean): void {
    const mark = this.#marks[slot] as number;
    if ((mark & isListed) === 0) {
      this.#changed.push(slot);
      this.#marks[slot] = mark | isListed;
    }
    if (!urgent || (mark & (isUrgent | isUnderWay | isFailing)) !== 0 || !this.#deps.hub.isReachable) return;
    this.#marks[slot] = mark | isListed | isUrgent;
    this.#urgent.push(slot);
    // After the requests of this turn, which may make others urgent too.
    if (this.#urgent.length === 1) setImmediate(() => this.#sendUrgent());
  }

  /** Reports everything that has changed. Resolves when the answers are in, or will not come; never rejects. */
  async tick(): Promise<void> {
    if (!this.#deps.hub.isReachable) return;
    const retried = this.#toRetry.splice(0, this.#hasFailedSinceTick ? reportsMax : this.#toRetry.length);
    this.#hasFailedSinceTick = false;
    const slots = retried.length === 0 ? this.#changed : [...retried, ...this.#changed];
    this.#changed = [];
    for (const slot of slots) this.#unmark(slot, isListed);
    const batches: Promise<void>[] = [];
    // An empty batch too: it asks whether the hub still has the earlier reports.
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
    const sentAtMs = this.#deps.clock.monotonicMs();
    const sent: (SubjectReport & { readonly slot: number })[] = [];
    for (const slot of slots) {
      const mark = this.#marks[slot] as number;
      if ((mark & isUnderWay) !== 0) {
        // One at a time: the answer on its way may already say what this report would ask.
        this.changed(slot, false);
        continue;
      }
      const report = this.#deps.table.rows.report(slot, this.#deps.replica, sentAtMs);
      if (report === undefined) {
        this.#succeed(slot);
        continue;
      }
      this.#marks[slot] = mark | isUnderWay;
      sent.push({ slot, subject: this.#deps.table.idOf(slot), apiId: this.#deps.table.apiIdOf(slot), report });
    }
    this.#batchesUnderWay++;
    try {
      const { news, epoch, refusal } = await this.#deps.hub.exchange(sent);
      const nowMs = this.#deps.clock.monotonicMs();
      let failed = 0;
      sent.forEach(({ slot, subject, report }, i) => {
        this.#unmark(slot, isUnderWay);
        const received = news[i];
        if (received === undefined) {
          failed++;
          this.#fail(slot);
          return;
        }
        this.#succeed(slot);
        if (this.#deps.table.idOf(slot) === subject)
          this.#deps.table.rows.learn(slot, report, received, sentAtMs, nowMs);
      });
      this.#deps.metrics.windowsSynced("merged", sent.length - failed);
      if (failed > 0) this.#deps.metrics.windowsSynced("failed", failed);
      const trouble = "some rate-limit windows cannot be told to the other replicas";
      if (failed > 0 && refusal !== undefined) this.#troubles.begin(trouble, { reason: refusal }, refusal);
      if (epoch !== this.#epoch) this.#reportAgain(epoch);
    } catch {
      // The hub's own link says why, once. The windows stay as they are and are reported when it is back.
      for (const { slot } of sent) {
        this.#unmark(slot, isUnderWay);
        this.#fail(slot);
      }
      this.#deps.metrics.windowsSynced("failed", sent.length);
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
    if (this.#failing === 0) this.#troubles.end("all rate-limit windows are told to the other replicas again");
  }

  /** The hub has lost its data. Reports all windows again, also those without new verifications. */
  #reportAgain(epoch: string): void {
    this.#epoch = epoch;
    for (const slot of this.#deps.table.slotsInUse()) this.changed(slot, false);
  }

  #unmark(slot: number, mark: number): void {
    this.#marks[slot] = (this.#marks[slot] as number) & ~mark;
  }
}

/** The bits of a slot's mark. */
const isListed = 1;
const isUrgent = 2;
const isUnderWay = 4;
const isFailing = 8;
