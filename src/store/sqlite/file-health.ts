import type { Log } from "../../ambient/log.ts";
import { Unavailable } from "../../domain/unavailable.ts";
import type { StoreHealth } from "../store-health.ts";
import type { CheckResult } from "./check-data.ts";
import type { FileCheck, PrepareCheck } from "./file-check.ts";
import type { OpenFiles } from "./open-files.ts";

const compareEveryMs = 1000;
/** The pause between two checks, so that a disk with errors is not read all the time. */
const checkPauseMs = 10_000;
const damagedRemedy = "Stop the service and put a backup into an empty data folder.";
const lostRemedy = "Its data can be saved as long as the service runs: see docs/operations.md before you stop it.";

/**
 * The health of the data file. Problem: the file is damaged, or its path now names another file or none. Doubt: the file
 * may be damaged and has not been checked since.
 */
export class FileHealth implements StoreHealth {
  readonly #file: string;
  readonly #log: Log;
  readonly #prepareCheck: PrepareCheck;
  readonly #listeners: (() => void)[] = [];
  #doubt: Unavailable | undefined;
  #damaged: Unavailable | undefined;
  #lost: Unavailable | undefined;
  #check: FileCheck | undefined;
  #comparison: Promise<void> | undefined;
  #files: OpenFiles | undefined;
  #comparing: NodeJS.Timeout | undefined;
  #pause: NodeJS.Timeout | undefined;
  #stopped = false;

  constructor(file: string, options: { log: Log; prepareCheck: PrepareCheck }) {
    this.#file = file;
    this.#log = options.log;
    this.#prepareCheck = options.prepareCheck;
  }

  /** The file will be checked while it is in use. The check is prepared now and starts with `watch`. */
  prepareCheck(): void {
    this.#doubt = notChecked();
    this.#check = this.#prepareCheck(this.#file);
  }

  get problem(): Unavailable | undefined {
    return this.#damaged ?? this.#lost;
  }

  get doubt(): Unavailable | undefined {
    return this.#doubt;
  }

  /** The file is open. From now on its path is watched, and a prepared check starts. */
  watch(files: OpenFiles): void {
    this.#files = files;
    this.#comparing = setInterval(() => void this.refresh(), compareEveryMs).unref();
    if (this.#check !== undefined) this.#beginCheck();
  }

  /** Takes the result of a check, made before or during use of the file. */
  async applyCheck(result: CheckResult): Promise<void> {
    const wasServed = this.#check !== undefined;
    this.#check = undefined;
    await this.refresh();
    if (this.#stopped) return;
    const file = this.#file;
    // The check read the file at the path, and that may be another file now.
    if (this.#lost !== undefined) this.#pauseChecks();
    else if (result.outcome === "sound") {
      this.#doubt = undefined;
      if (wasServed) this.#log.info("the data file was checked and is sound", { file });
    } else if (result.outcome === "damaged") {
      this.#damaged = new Unavailable("the data file is damaged");
      const cause = new Error(result.reason);
      this.#log.error(`the data file is damaged: nothing is served from it. ${damagedRemedy}`, cause, { file });
      this.#notify();
    } else {
      this.#doubt ??= notChecked();
      const { reason } = result;
      this.#log.warn("the data file could not be checked: what is not found gets 503 until it is", { file, reason });
      this.#pauseChecks();
    }
  }

  /** Reading or writing failed. Only a check can tell whether the file is damaged. */
  suspect(cause: unknown): void {
    if (this.#doubt !== undefined || this.#damaged !== undefined || this.#stopped) return;
    this.#log.error("the data file could not be read or written; it is checked again", cause, { file: this.#file });
    this.#doubt = notChecked();
    if (this.#pause === undefined) this.#beginCheck();
    this.#pauseChecks();
  }

  refresh(): Promise<void> {
    // One at a time: with a file system that hangs, each would block one of Node's few threads.
    this.#comparison ??= this.#compare().finally(() => {
      this.#comparison = undefined;
    });
    return this.#comparison;
  }

  onChange(listener: () => void): void {
    this.#listeners.push(listener);
  }

  /** Stops the check and the comparisons. Resolves to whether the file is known to be sound and in its place. */
  async stop(): Promise<boolean> {
    if (!this.#stopped) await this.refresh();
    this.#stopped = true;
    clearInterval(this.#comparing);
    clearTimeout(this.#pause);
    await this.#check?.stop();
    return this.problem === undefined && this.doubt === undefined;
  }

  async #compare(): Promise<void> {
    const difference = await this.#files?.findDifference();
    if (this.#stopped || difference === this.#lost?.message) return;
    this.#lost = difference === undefined ? undefined : new Unavailable(difference);
    if (this.#lost === undefined) this.#log.warn("the data file is in its place again", { file: this.#file });
    else this.#log.error(`the data file is not in its place: nothing is served from it. ${lostRemedy}`, this.#lost);
    this.#notify();
  }

  #beginCheck(): void {
    const check = this.#check ?? this.#prepareCheck(this.#file);
    this.#check = check;
    check.begin();
    void check.result.then((result) => this.applyCheck(result));
  }

  /** A check requested during the pause starts at its end. */
  #pauseChecks(): void {
    this.#pause ??= setTimeout(() => {
      this.#pause = undefined;
      if (this.#doubt !== undefined && this.#damaged === undefined && this.#check === undefined) this.#beginCheck();
    }, checkPauseMs).unref();
  }

  #notify(): void {
    for (const listener of this.#listeners) listener();
  }
}

function notChecked(): Unavailable {
  return new Unavailable("the data file has not been checked: what is not found in it may exist", {
    affectsOneKeyOnly: true,
  });
}
