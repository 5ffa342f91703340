/** An open window, with times from the moment of saving on. */
export interface SavedWindow {
  readonly subject: string;
  readonly mine: number;
  readonly mineEndsInMs: number;
  readonly share: number;
  readonly shareEndsInMs: number;
  readonly gen: number;
  readonly others: number;
  readonly durationMs: number;
}
