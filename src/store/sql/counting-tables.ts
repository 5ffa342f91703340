/** The tables whose rows count for a subject, in the order in which their rows are locked. */
export const countingTables = ["counters", "permit_windows"] as const;
