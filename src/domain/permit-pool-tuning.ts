/**
 * The numbers of a permit pool. None but the first two bear on safety: the others trade waiting, calls of the ledger and what
 * a crash strands against each other, and were chosen with the simulation in test/domain.
 */

/** Clocks may differ in speed by a thousandth: ten times what crystals do. */
export const clockTrust = 0.999;

/** The ledger counts whole milliseconds: its window can end by that much sooner than it says. */
export const ledgerTickMs = 1;

/** How long permits stay unused in a window where others are short, and the least that a short asker waits for them. */
export const holdMs = 50;

/** A block lasts at least as long, and so long is what a crash strands: a quarter of a second's demand. */
export const blockMinMs = 250;

/** Requests of this long ago count for 1/e: seldom enough to average over, soon enough to see a lull. */
export const demandMemoryMs = 250;

/** Of a Poisson count: a block is fetched before the last one is used up, but for a few times in a hundred. */
export const lowMarkDeviations = 2;

/** The share of the newest round trip in the average: follows a change of route, not each hiccup. */
export const rttWeight = 0.25;

/** By how much of a round trip one message may be faster than another. */
export const jitterShare = 0.1;

/** Pauses between asks while others hold the last permits. They grow, for a far holder may take a while. */
export const retryMinMs = 5;
export const retryMaxMs = 25;

/** How long a denial is remembered while the ledger's clock is behind: so soon is it noticed that it is right again. */
export const behindMs = 1000;

/** Looks for permits that others hold to the end divide the rest of a window into at least so many parts. */
export const probes = 8;

/**
 * A replica that nobody has asked for so long, and for so many times the usual pause between two requests, gives everything
 * back: whoever moved elsewhere needs it there.
 */
export const idleMinMs = 100;
export const idlePauses = 8;
