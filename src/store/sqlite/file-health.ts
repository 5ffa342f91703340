import type { Log } from "../../ambient/log.ts";
import { Unavailable } from "../../domain/unavailable.ts";
import type { StoreHealth } from "../store-health.ts";
import type { CheckResult } from "./check-data.ts";
import { noteFailedWrite } from "./clean-stop.ts";
import type { FileCheck, PrepareCheck } from "./file-check.ts";
import type { OpenFiles } from "./open-files.ts";

const compareEveryMs = 1000;
/** The pause between two checks, so that a disk with errors is not read all the time. */
const checkPauseMs = 10_000;
const unwrittenRemedy =
  "Take `latchkey backup FILE` to another disk before you stop the service: the system's cache may have what the disk has not.";
const damagedRemedy = "Stop the service and put a backup into an empty data folder.";
const lostRemedy = "Its data can be saved as long as the service runs: see docs/operations.md before you stop it.";

/**
 * The health of the data file. Problem: the file is damaged, a write to it has failed and it was not compared with the disk
 * since, or its path now names another file or none. Doubt: the file may be damaged and has not been checked since.
 */
export class FileHealth implements StoreHealth {
  readonly #file: string;
  readonly #log: Log;
  readonly #prepareCheck: PrepareCheck;
  readonly #listeners: (() => void)[] = [];
  #doubt: Unavailable | undefined;
  /** For good: it is damaged, or what was written has not reached the disk. */
  #damaged: Unavailable | undefined;
  /** A new object for each failure, to see whether a check began before the last one. */
  #failedWrite: Unavailable | undefined;
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
    return this.#damaged ?? this.#failedWrite ?? this.#lost;
  }

  /** Whether the file must be left as it is. */
  get hasFailed(): boolean {
    return this.#damaged !== undefined || this.#failedWrite !== undefined;
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

  /** Takes the result of a check, made before or during use of the file. `failedWrite`: the last one when it began. */
  async applyCheck(result: CheckResult, failedWrite?: Unavailable): Promise<void> {
    const wasServed = this.#check !== undefined;
    this.#check = undefined;
    await this.refresh();
    if (this.#stopped) return;
    if (this.#failedWrite !== failedWrite) {
      // The check had begun before that failure.
      this.#pauseChecks();
      return;
    }
    const file = this.#file;
    // The check read the file at the path, and that may be another file now.
    if (this.#lost !== undefined) this.#pauseChecks();
    else if (result.outcome === "sound") {
      const hadFailed = this.#failedWrite !== undefined;
      if (hadFailed && result.isOnDisk !== true) {
        this.#fail("a write to the data file failed", unwrittenRemedy, "its file system cannot be read past the cache");
        return;
      }
      this.#doubt = undefined;
      this.#failedWrite = undefined;
      if (hadFailed) noteFailedWrite(file, false);
      if (wasServed) this.#log.info("the data file was checked and is sound", { file });
      if (hadFailed) this.#notify();
    } else if (result.outcome === "damaged") {
      this.#fail("the data file is damaged", damagedRemedy, result.reason);
    } else if (result.outcome === "unwritten") {
      noteFailedWrite(file, true);
      this.#fail("what was written to the data file is not on the disk", unwrittenRemedy, result.reason);
    } else {
      this.#doubt ??= notChecked();
      const { reason } = result;
      this.#log.warn("the data file could not be checked: what is not found gets 503 until it is", { file, reason });
      this.#pauseChecks();
    }
  }

  /**
   * Writing failed. The system may have lost it and still show it, also to later writes and to a check that reads its cache.
   * So nothing is answered until a check has compared that cache with the disk.
   */
  failWrite(cause: unknown): void {
    if (this.#damaged !== undefined || this.#stopped) return;
    const text = `the data file could not be written: nothing is served from it until it was compared with the disk. ${unwrittenRemedy}`;
    this.#log.error(text, cause, { file: this.#file });
    this.#failedWrite = new Unavailable("a write to the data file failed, and it was not compared with the disk since");
    noteFailedWrite(this.#file, true);
    this.#notify();
    // The result of a check that is under way does not count.
    if (this.#pause === undefined && this.#comparing !== undefined && this.#check === undefined) this.#beginCheck();
    this.#pauseChecks();
  }

  /** Reading failed. Only a check can tell whether the file is damaged. */
  suspect(cause: unknown): void {
    if (this.#doubt !== undefined || this.#damaged !== undefined || this.#stopped) return;
    this.#log.error("the data file could not be read; it is checked again", cause, { file: this.#file });
    this.#doubt = notChecked();
    if (this.#pause === undefined && this.#check === undefined) this.#beginCheck();
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

  #fail(problem: string, remedy: string, reason: string): void {
    this.#damaged = new Unavailable(problem);
    this.#log.error(`${problem}: nothing is served from it. ${remedy}`, new Error(reason), { file: this.#file });
    this.#notify();
  }

  async #compare(): Promise<void> {
    const difference = await this.#files?.findDifference();
    const loss = await this.#files?.findLoss();
    if (this.#stopped) return;
    if (loss !== undefined) this.failWrite(new Error(loss));
    if (difference === this.#lost?.message) return;
    this.#lost = difference === undefined ? undefined : new Unavailable(difference);
    if (this.#lost === undefined) this.#log.warn("the data file is in its place again", { file: this.#file });
    else this.#log.error(`the data file is not in its place: nothing is served from it. ${lostRemedy}`, this.#lost);
    this.#notify();
  }

  #beginCheck(): void {
    const check = this.#check ?? this.#prepareCheck(this.#file);
    this.#check = check;
    check.begin();
    const failedWrite = this.#failedWrite;
    void check.result.then((result) => this.applyCheck(result, failedWrite));
  }

  /** A check requested during the pause starts at its end. */
  #pauseChecks(): void {
    this.#pause ??= setTimeout(() => {
      this.#pause = undefined;
      const isDue = this.#doubt !== undefined || this.#failedWrite !== undefined;
      if (isDue && this.#damaged === undefined && this.#check === undefined) this.#beginCheck();
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
