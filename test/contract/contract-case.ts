import type { Store } from "../../src/store/store.ts";
import type { TestClock } from "../support/test-clock.ts";

/** One promise of the store. It gets a new, empty store that runs on the clock, and throws when the promise is broken. */
export interface ContractCase {
  readonly name: string;
  run(store: Store, clock: TestClock): Promise<void>;
}
