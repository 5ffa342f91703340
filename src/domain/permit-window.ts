/**
 * A key's window as the permit ledger keeps it. Permits are charged here before anybody holds them: whatever becomes of
 * a holder, no more than `limit` can ever be spent in one window.
 */
export interface PermitWindow {
  /** Counts the key's windows; 0 when none was ever opened. */
  readonly gen: number;
  /** By the ledger's clock. */
  readonly endsAtMs: number;
  /** Permits handed out in this window, less those that came back. */
  readonly granted: number;
  /** How many of the granted ones are reported as spent. */
  readonly spent: number;
  /** The end is near and everybody wants some: from then on only real demand is served. */
  readonly contended: boolean;
}

export const neverOpened: PermitWindow = { gen: 0, endsAtMs: 0, granted: 0, spent: 0, contended: false };

/** What one asker gives and wants, in one message: whole numbers, of which those below 0 count as 0. */
export interface PermitAsk {
  /** Permits for requests that are waiting. Only these open a window. */
  readonly wantMin: number;
  /** Permits for those and for what is expected soon. At least `wantMin`. */
  readonly wantMax: number;
  /** The window that `returned` and `spent` belong to. Those of another window than the open one are dropped. */
  readonly gen: number;
  /** Permits that come back unspent. The asker must have given them up before it sends this, and send it once. */
  readonly returned: number;
  /** Permits spent since the last report. */
  readonly spent: number;
  /** How many askers share the key, as far as is known: nobody takes more than half of an equal part in advance. */
  readonly holders: number;
}

export interface PermitGrant {
  /** The window that the permits are for; when none is open, the latest one. */
  readonly gen: number;
  readonly granted: number;
  /** Permits that are still to be had. */
  readonly left: number;
  /** Permits that are held by somebody, as far as is known: handed out and neither returned nor reported as spent. */
  readonly outstanding: number;
  /**
   * Time to the window's end; 0 when none is open. The ledger counts whole milliseconds: the end can be up to one
   * nearer than this says, which a holder must allow for.
   */
  readonly endsInMs: number;
  /** For display only: the window's end by the ledger's clock. */
  readonly endsAtMs: number;
  readonly contended: boolean;
  readonly limit: number;
}

/** Settles one ask by the ledger's clock. The rule is the one in force now, whatever the asker believes. */
export function exchangePermits(
  before: PermitWindow,
  ask: PermitAsk,
  rule: { readonly limit: number; readonly durationMs: number },
  nowMs: number,
): { readonly window: PermitWindow; readonly grant: PermitGrant } {
  const window = nowMs < before.endsAtMs ? credited(before, ask) : opened(before, ask, rule.durationMs, nowMs);
  const endsInMs = Math.max(0, window.endsAtMs - nowMs);
  const isOpen = endsInMs > 0;
  const available = isOpen ? Math.max(0, rule.limit - window.granted) : 0;
  const share = 2 * Math.max(1, ask.holders);
  const inAdvance = window.contended ? 0 : Math.min(ask.wantMax, Math.floor(available / share));
  const granted = Math.min(available, Math.max(0, ask.wantMin, inAdvance));
  const after: PermitWindow = {
    ...window,
    granted: window.granted + granted,
    contended: window.contended || (isOpen && available - granted < share),
  };
  return {
    window: after,
    grant: {
      gen: after.gen,
      granted,
      left: available - granted,
      // What is left of a window that has ended is nobody's.
      outstanding: isOpen ? after.granted - after.spent : 0,
      endsInMs,
      endsAtMs: after.endsAtMs,
      contended: isOpen && after.contended,
      limit: rule.limit,
    },
  };
}

/**
 * What comes back or is reported for another window than the open one is gone with it. A permit is either spent or
 * comes back, once: whatever an asker says, no more can come back than is out, so that it never makes room for more
 * than `limit`.
 */
function credited(window: PermitWindow, ask: PermitAsk): PermitWindow {
  if (ask.gen !== window.gen) return window;
  const spent = Math.min(window.granted, window.spent + Math.max(0, ask.spent));
  const returned = Math.min(window.granted - spent, Math.max(0, ask.returned));
  return { ...window, granted: window.granted - returned, spent };
}

/** A window begins with real demand, never with a report or a wish. */
function opened(window: PermitWindow, ask: PermitAsk, durationMs: number, nowMs: number): PermitWindow {
  if (ask.wantMin <= 0) return window;
  return { gen: window.gen + 1, endsAtMs: nowMs + durationMs, granted: 0, spent: 0, contended: false };
}
