import { neverOpened, type PermitAsk, type PermitGrant, type PermitWindow } from "../../../src/domain/permit-window.ts";
import type { Parts, Scope } from "./scope.ts";

/** Not 0, which the pool takes for "never". */
export const startMs = 1000;
/** What the ledger's clock shows at 0: high enough to be set back and stay above 0. */
const ledgerEpochMs = 1_000_000;

/** The ledger of a world: its clock, the rule in force and the windows so far. It sees when one opens too early or lasts too long. */
export class WorldLedger {
  /** True time, which the replicas' own clocks go by. */
  nowMs = startMs;
  /** By how much the ledger's clock is ahead of it. */
  clockAheadMs = 0;
  /** Since when the ledger's clock is seen to be behind for the open window, if it was not set since. */
  seenBehindMs: number | undefined;
  /** The rule in force. */
  limit: number;
  durationMs: number;
  window: PermitWindow = neverOpened;
  /** When each window ends in true time, if it lasts for its duration; and by what clock it was opened. */
  endsAtMs: number[] = [];
  openedAheadMs: number[] = [];
  /** Parts of the world's key: of the window, and of all windows so far. Undefined: changed since the last key. */
  protected windowKey: number | undefined;
  protected pastKey: number | undefined;
  /** The first promise that was broken, and how. */
  broken: string | undefined;
  readonly scope: Scope;
  readonly parts: Parts;

  constructor(scope: Scope, parts: Parts) {
    this.scope = scope;
    this.parts = parts;
    this.limit = scope.limit;
    this.durationMs = scope.durationMs;
  }

  /** Sets the ledger's clock: to a wrong time, or right again. */
  setClock(): void {
    this.clockAheadMs = this.clockAheadMs === 0 ? this.scope.setByMs : 0;
    this.seenBehindMs = undefined;
  }

  /** The key gets a shorter duration, for windows to come. */
  shorten(): void {
    this.durationMs /= 2;
  }

  /** The key gets a lower limit. Replicas hear of it later. */
  lower(): void {
    this.limit--;
  }

  reclaim(): void {
    this.window = { ...this.window, granted: this.window.spent };
    this.windowKey = undefined;
  }

  protected exchange(ask: PermitAsk): PermitGrant {
    const rule = { limit: this.limit, durationMs: this.durationMs };
    const ledgerNowMs = ledgerEpochMs + this.nowMs + this.clockAheadMs;
    const { window, grant } = this.parts.exchange(this.window, ask, rule, ledgerNowMs);
    if (window.gen !== this.window.gen) this.opened(window.gen);
    else if (ask.waiting.some(({ cost }) => cost <= this.limit)) this.stillOpen(window);
    this.window = window;
    this.windowKey = undefined;
    return grant;
  }

  private opened(gen: number): void {
    const earlyMs = (this.endsAtMs[gen - 1] ?? 0) - this.nowMs;
    if (earlyMs > 0 && this.clockAheadMs <= (this.openedAheadMs[gen - 1] as number)) {
      this.broken ??= `twice: window ${gen} opened ${earlyMs} ms before the end of the one before`;
    }
    this.endsAtMs[gen] = this.nowMs + this.durationMs;
    this.openedAheadMs[gen] = this.clockAheadMs;
    this.pastKey = undefined;
    this.seenBehindMs = undefined;
  }

  /** A request waits and no window was opened for it: so the last window still counts. */
  private stillOpen({ gen }: PermitWindow): void {
    if (this.clockAheadMs >= (this.openedAheadMs[gen] as number)) return;
    this.seenBehindMs ??= this.nowMs;
    const lockedMs = this.nowMs - this.seenBehindMs;
    if (lockedMs >= this.scope.durationMs) this.broken ??= `locked: window ${gen} still open after ${lockedMs} ms`;
  }
}
