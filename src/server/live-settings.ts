import { sameValue } from "../config/same-value.ts";
import type { Settings } from "../config/settings.ts";
import { variables } from "../config/variables.ts";
import type { MaybePromise } from "../domain/maybe-promise.ts";

type Follower = (next: Settings, before: Settings) => MaybePromise<void>;

/**
 * The settings as they are now. Parts that use a setting which may change while the process runs read it here each time,
 * or follow it.
 */
export class LiveSettings {
  #current: Settings;
  readonly #followers: Follower[] = [];

  constructor(settings: Settings) {
    this.#current = settings;
  }

  get current(): Settings {
    return this.#current;
  }

  /** Calls `apply` after each change. Followers are called one after the other, the first to follow first. */
  follow(apply: Follower): void {
    this.#followers.push(apply);
  }

  /** Resolves when every follower has the new settings. */
  async replace(next: Settings): Promise<void> {
    const before = this.#current;
    this.#current = next;
    for (const apply of this.#followers) await apply(next, before);
  }
}

/** What of `next` a running process can take over, and the names of what it cannot. */
export function takeOver(
  current: Settings,
  next: Settings,
): { settings: Settings; changed: string[]; fixed: string[] } {
  const settings: Record<string, unknown> = { ...current };
  const changed: string[] = [];
  const fixed: string[] = [];
  for (const [setting, { name, live }] of Object.entries(variables)) {
    const value = next[setting as keyof Settings];
    if (sameValue(value, current[setting as keyof Settings])) continue;
    // Without any root key from the settings, another one would have to become valid: only a start decides that.
    const isLast = setting === "rootKeys" && next.rootKeys.length === 0;
    if (live && !isLast) settings[setting] = value;
    (live && !isLast ? changed : fixed).push(name);
  }
  for (const [setting, name] of [
    ["tls", "LATCHKEY_TLS_CERT"],
    ["internalTls", "LATCHKEY_INTERNAL_TLS_CERT"],
  ] as const) {
    // Between cleartext and TLS only a start changes: the files are then among the settings that are fixed.
    if (current[setting] === undefined || next[setting] === undefined) continue;
    if (fixed.includes(name) || sameValue(next[setting], current[setting])) continue;
    settings[setting] = next[setting];
    changed.push(name);
  }
  return { settings: settings as unknown as Settings, changed, fixed };
}
