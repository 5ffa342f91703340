import { type LatchkeyProcess, startLatchkey } from "./latchkey-process.ts";
import { testRootKey } from "./test-root-key.ts";

/** The processes that are used, each of which can be killed and replaced. */
export interface LoadedFleet {
  readonly size: number;
  replica(index: number): LatchkeyProcess;
  /** Whether that very process was killed: what it had under way is unknown. */
  isKilled(replica: LatchkeyProcess): boolean;
}

/** Several replicas, each a process of its own, on one database. */
export class Fleet implements LoadedFleet {
  readonly #environment: Record<string, string>;
  readonly #replicas: LatchkeyProcess[];
  readonly #killed = new Set<LatchkeyProcess>();

  private constructor(environment: Record<string, string>, replicas: LatchkeyProcess[]) {
    this.#environment = environment;
    this.#replicas = replicas;
  }

  /** One process with a store of its own in that folder. */
  static async startEmbedded(folder: string, own: Record<string, string> = {}): Promise<Fleet> {
    const environment = { LATCHKEY_DATA_DIR: folder, LATCHKEY_ROOT_KEY: testRootKey, ...own };
    return new Fleet(environment, [await startLatchkey(environment)]);
  }

  /** Resolves when all of them serve. `own` adds to the environment of each; `atEnd` as for `startLatchkey`. */
  static async start(
    databaseUrl: string,
    replicas: number,
    own: (replica: number) => Record<string, string> = () => ({}),
    atEnd?: (undo: () => void) => void,
  ): Promise<Fleet> {
    // Patient, however busy the machine is: what these tests count is uses, not 503s.
    const timeouts = { LATCHKEY_USAGE_TIMEOUT_MS: "2000" };
    const environment = { DATABASE_URL: databaseUrl, LATCHKEY_ROOT_KEY: testRootKey, ...timeouts };
    const starting = Array.from({ length: replicas }, (_, i) =>
      startLatchkey({ ...environment, ...own(i) }, undefined, atEnd),
    );
    return new Fleet(environment, await Promise.all(starting));
  }

  get size(): number {
    return this.#replicas.length;
  }

  get baseUrls(): string[] {
    return this.#replicas.map(({ baseUrl }) => baseUrl);
  }

  get pids(): number[] {
    return this.#replicas.map(({ pid }) => pid);
  }

  replica(index: number): LatchkeyProcess {
    return this.#replicas[index] as LatchkeyProcess;
  }

  /** Whether that very process was killed: what it had under way is unknown. */
  isKilled(replica: LatchkeyProcess): boolean {
    return this.#killed.has(replica);
  }

  /** Answers how it ended. With SIGTERM it is stopped in order. */
  kill(index: number, signal: "SIGKILL" | "SIGTERM" = "SIGKILL"): LatchkeyProcess["exited"] {
    const replica = this.replica(index);
    // Noted first, so that no call begins between the signal and the exit.
    this.#killed.add(replica);
    replica.kill(signal);
    return replica.exited;
  }

  /** Puts a new process in the place of a killed one. */
  async replace(index: number): Promise<void> {
    this.#replicas[index] = await startLatchkey(this.#environment);
  }
}
