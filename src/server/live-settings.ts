import { sameValue } from "../config/same-value.ts";
import type { Settings } from "../config/settings.ts";
import { tlsPorts } from "../config/tls-files.ts";
import { type Variable, variables } from "../config/variables.ts";
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

  /** Resolves when every follower has the new settings. Rejects if one has not: then they are replaced again later. */
  async replace(next: Settings): Promise<void> {
    const before = this.#current;
    this.#current = next;
    const failures: unknown[] = [];
    for (const apply of this.#followers) {
      try {
        await apply(next, before);
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length === 0) return;
    this.#current = before;
    throw failures[0];
  }
}

/**
 * What only a start may remove, although it is live. Without any root key from the settings, another one would have to
 * become valid. Without any proof, the internal port would be open: a file that is just being written must not do that.
 */
function keptBy(current: Settings, next: Settings): ReadonlySet<string> {
  const kept = new Set<string>();
  if (next.rootKeys.length === 0) kept.add("rootKeys");
  if (asksForProof(current) && !asksForProof(next)) kept.add("internalSecrets").add("internalClientCa");
  return kept;
}

function asksForProof({ internalSecrets, internalClientCa }: Settings): boolean {
  return internalSecrets.length > 0 || internalClientCa !== undefined;
}

/** What of `next` a running process can take over, and the names of what it cannot. */
export function takeOver(current: Settings, next: Settings) {
  const settings: Record<string, unknown> = { ...current };
  const changed: string[] = [];
  const fixed: string[] = [];
  const kept = keptBy(current, next);
  for (const [setting, { name, live }] of Object.entries<Variable<unknown>>(variables)) {
    const value = next[setting as keyof Settings];
    if (sameValue(value, current[setting as keyof Settings])) continue;
    const isTaken = live && !kept.has(setting);
    if (isTaken) settings[setting] = value;
    (isTaken ? changed : fixed).push(name);
  }
  for (const { identity, cert } of Object.values(tlsPorts)) {
    const { name } = variables[cert];
    // Between cleartext and TLS only a start changes: the files are then among the settings that are fixed.
    if (current[identity] === undefined || next[identity] === undefined) continue;
    if (fixed.includes(name) || sameValue(next[identity], current[identity])) continue;
    settings[identity] = next[identity];
    changed.push(name);
  }
  return { settings: settings as unknown as Settings, changed, fixed };
}
