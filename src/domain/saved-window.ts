/** An open window, with times from the moment of saving on. */
export interface SavedWindow {
  readonly subject: string;
  /** The API that its place counts for. Absent: it named none, or was saved by version 0.2.0, which did not know it. */
  readonly apiId?: string | undefined;
  readonly mine: number;
  readonly mineEndsInMs: number;
  readonly share: number;
  readonly shareEndsInMs: number;
  readonly gen: number;
  readonly others: number;
  readonly durationMs: number;
}
