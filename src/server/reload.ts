import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import type { Ambient } from "../ambient/ambient.ts";
import { internalPortConflicts } from "../config/setting-conflicts.ts";
import {
  type Environment,
  readSettings,
  type Settings,
  SettingsError,
  settingFiles,
  withSettingsFile,
} from "../config/settings.ts";
import { variables } from "../config/variables.ts";
import { type LiveSettings, takeOver } from "./live-settings.ts";

const everyMs = 10_000;

export interface ReloadOptions extends Pick<Ambient, "log"> {
  readonly environment: Environment;
  readonly live: LiveSettings;
}

/**
 * Reads the files of settings, secrets and certificates again while the process runs, and hands on what is new in them.
 * Where anything is wrong, everything stays as it was.
 */
export class Reload {
  readonly #options: ReloadOptions;
  readonly #timer: NodeJS.Timeout;
  /** The last warning about files that cannot be used, or not without a restart. */
  #lastWarning = "";
  #wasFileEmpty: boolean;
  #running: Promise<void> = Promise.resolve();

  constructor(options: ReloadOptions) {
    this.#options = options;
    const settingsFile = options.environment[variables.settingsFile.name];
    this.#wasFileEmpty = Boolean(settingsFile) && readFileSync(settingsFile as string, "utf8") === "";
    this.#timer = setInterval(() => void this.check(), everyMs).unref();
  }

  /** Resolves to whether anything has changed, when it is in force. Never rejects. */
  check(): Promise<boolean> {
    const checked = this.#running.then(() => this.#reload());
    this.#running = checked.then(() => {});
    return checked;
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#running;
  }

  async #reload(): Promise<boolean> {
    const { environment, live, log } = this.#options;
    try {
      const read = await readAgain(environment);
      const { settings, changed, fixed } = takeOver(live.current, read.settings);
      if (read.isFileEmpty && !this.#wasFileEmpty) {
        // Emptied to be written again, most likely.
        throw new SettingsError(["LATCHKEY_SETTINGS_FILE names a file that is empty"]);
      }
      // New values beside old ones that stay: the rules have to hold for what is then in force.
      const problems = internalPortConflicts(settings, settings.internalSecrets.length > 0);
      if (problems.length > 0) throw new SettingsError(problems);
      this.#wasFileEmpty = read.isFileEmpty;
      const names = fixed.join(", ");
      if (fixed.length === 0) this.#lastWarning = "";
      else this.#warn("some new settings need a restart: the old ones stay", { settings: names });
      if (changed.length === 0) return false;
      await live.replace(settings);
      log.info("took over new settings", { settings: changed.join(", ") });
      return true;
    } catch (error) {
      if (!(error instanceof SettingsError)) log.error("new settings could not be taken over", error);
      else this.#warn("the new settings cannot be used: the old ones stay", { problems: error.problems.join("; ") });
      return false;
    }
  }

  /** Once, however often the same is found. */
  #warn(message: string, fields: Readonly<Record<string, string>>): void {
    const warning = JSON.stringify([message, fields]);
    if (warning === this.#lastWarning) return;
    this.#lastWarning = warning;
    this.#options.log.warn(message, fields);
  }
}

/** As a start reads them, without holding up the event loop. */
async function readAgain(environment: Environment): Promise<{ settings: Settings; isFileEmpty: boolean }> {
  const texts = new Map<string, string | Error>();
  const load = async (path: string) => texts.set(path, await readFile(path, "utf8").catch((error: Error) => error));
  const loaded = (path: string) => {
    const text = texts.get(path);
    if (typeof text === "string") return text;
    throw text ?? new Error(`${path} was not loaded`);
  };
  const settingsFile = environment[variables.settingsFile.name];
  if (settingsFile) await load(settingsFile);
  await Promise.all(settingFiles(withSettingsFile(environment, loaded)).map(load));
  const isFileEmpty = settingsFile !== undefined && texts.get(settingsFile) === "";
  return { settings: readSettings(environment, loaded).settings, isFileEmpty };
}
