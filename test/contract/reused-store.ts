import { DatabaseSync } from "node:sqlite";
import { afterAll } from "vitest";
import type { Clock } from "../../src/ambient/clock.ts";
import type { Store } from "../../src/store/store.ts";
import { TestClock } from "../support/test-clock.ts";

/** A store that takes longer to open than to be emptied: all cases use one. `remember`: of one that is not emptied otherwise. */
export function reused(
  open: (clock: Clock) => Promise<Store>,
  remember = () => () => {},
): (clock: TestClock) => Promise<Store> {
  const clock = new ClockOfEach();
  let store: Store | undefined;
  let empty: (() => void) | undefined;
  afterAll(() => store?.close());
  return async (ofCase) => {
    clock.follow(ofCase);
    empty?.();
    store ??= await open(clock);
    empty ??= remember();
    return { ...store, close: async () => {} };
  };
}

/** The clock of the case that runs. The monotonic one goes on from case to case. */
class ClockOfEach implements Clock {
  #followed = new TestClock();
  #beforeMs = 0;

  follow(clock: TestClock): void {
    this.#beforeMs = this.monotonicMs();
    this.#followed = clock;
  }

  nowMs = () => this.#followed.nowMs();
  monotonicMs = () => this.#beforeMs + this.#followed.monotonicMs();
  lateMs = () => this.#followed.lateMs();
}

/** Of a data file that is open: answers what brings its rows back to what they are now. */
export function rememberRows(file: string): () => void {
  const rows = withFile(file, (db) => {
    const tables = db.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").all() as { name: string }[];
    return tables.map(({ name }) => ({ name, rows: db.prepare(`SELECT * FROM "${name}"`).all() }));
  });
  return () =>
    withFile(file, (db) => {
      db.exec("PRAGMA foreign_keys = OFF; BEGIN IMMEDIATE");
      for (const { name, rows: initial } of rows) {
        db.exec(`DELETE FROM "${name}"`);
        for (const row of initial) {
          const columns = Object.keys(row);
          const places = columns.map(() => "?").join();
          db.prepare(`INSERT INTO "${name}" (${columns.join()}) VALUES (${places})`).run(...Object.values(row));
        }
      }
      db.exec("COMMIT");
    });
}

function withFile<Result>(file: string, use: (db: DatabaseSync) => Result): Result {
  const db = new DatabaseSync(file);
  try {
    return use(db);
  } finally {
    db.close();
  }
}
