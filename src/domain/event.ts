/** One change, as it was made. */
export interface StoredEvent {
  /** Sorts by the time at which it was made. */
  readonly id: string;
  readonly atMs: number;
  /** The id of the root key that made the change. */
  readonly actor: string;
  /** As it is called in JSON, such as `keys.createKey`. */
  readonly method: string;
  readonly targetId: string;
  /** The API that it concerns; undefined: it concerns the service. */
  readonly apiId: string | undefined;
  /** The names of the fields that were changed; never their values. */
  readonly fields: readonly string[];
  /** The target's, after the change. */
  readonly version: number | undefined;
}
