/**
 * The constants of a permit pool. Only the first two matter for safety. The others balance waiting time, calls to the
 * ledger and permits lost by a crash; they were chosen with the simulation in test/domain.
 */

/** Two clocks may differ in speed by a thousandth: ten times more than real ones do. */
export const clockSpeedMargin = 0.999;

/** The ledger counts whole milliseconds: its window can end up to one earlier than it says. */
export const ledgerTickMs = 1;

/** How long unused permits are kept while other replicas lack some, and the shortest wait of a replica that lacks some. */
export const holdMs = 50;

/** A block covers at least this much demand. A crash loses as much: the permits for a quarter of a second. */
export const blockMinMs = 250;

/** A request this long ago has the weight 1/e in the demand: long enough for an average, short enough to notice a lull. */
export const demandMemoryMs = 250;

/** Standard deviations of a Poisson count: a new block arrives before the old one is used up in all but a few percent. */
export const lowMarkDeviations = 2;

/** The weight of the newest round trip in the average: it follows a change of route, not every outlier. */
export const rttWeight = 0.25;

/** How much faster than average a message may be, as a part of the round trip. */
export const jitterShare = 0.1;

/** Pauses between messages while other replicas hold the last permits. They grow: a distant holder may take longer. */
export const retryMinMs = 5;
export const retryMaxMs = 25;

/** How long a denial holds while the ledger's clock is behind. Then the ledger is asked again: its clock may be right. */
export const clockBehindDenialMs = 1000;

/**
 * How long a pool is kept after the end of its window. It counts the window from when it asked, so after a slow answer it
 * takes the window for over before the ledger does: a new pool in the same window could show more than this one did.
 */
export const keptAfterWindowMs = 1000;

/** A replica that lacks permits asks for returned ones at least so many times during the rest of the window. */
export const retriesMin = 8;

/**
 * A replica returns all permits when it has had no request for this long, and for so many times its usual pause between
 * two requests. Its callers may have moved to another replica, which then needs the permits.
 */
export const idleMinMs = 100;
export const idlePausesMin = 8;
