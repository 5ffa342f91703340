import type { NewRootKey, StoredRootKey } from "../../src/domain/root-key.ts";
import {
  type Command,
  type CreateRootKey,
  type RevokeRootKey,
  resourceOf,
  type UpdateRootKey,
} from "../../src/store/commands.ts";
import type { Outcome } from "../../src/store/management.ts";
import type { Page, PageQuery } from "../../src/store/queries.ts";
import { generatedRootKeyId, type RootKeyStore } from "../../src/store/root-key-store.ts";

export type RootKeyCommand = CreateRootKey | UpdateRootKey | RevokeRootKey;

type Kept = NewRootKey & Pick<StoredRootKey, "updatedAtMs" | "version">;

/** The root keys of the simplest store. */
export class MemoryRootKeys implements RootKeyStore {
  /** By their ids. */
  readonly #kept = new Map<string, Kept>();
  readonly #onChange: () => void;

  constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  async findByDigest(digest: string) {
    const found = [...this.#kept.values()].find((rootKey) => rootKey.digest === digest);
    if (found === undefined) return undefined;
    const { id: rootKeyId, permissions, apiIds, expiresAtMs } = found;
    return { rootKeyId, permissions, apiIds, expiresAtMs };
  }

  async presence(nowMs: number) {
    if (this.#kept.size === 0) return "none";
    if (this.#areAllRetired(nowMs)) return "retired";
    return [...this.#kept.keys()].every((id) => id === generatedRootKeyId) ? "generated" : "some";
  }

  #areAllRetired(nowMs: number): boolean {
    return [...this.#kept.values()].every((kept) => isRetired(kept, nowMs));
  }

  async announceChange() {
    this.#onChange();
  }

  async retireGenerated(nowMs: number, exceptDigests: readonly string[]) {
    const generated = this.#kept.get(generatedRootKeyId);
    if (generated === undefined || exceptDigests.includes(generated.digest) || isRetired(generated, nowMs)) return;
    const version = generated.version + 1;
    this.#kept.set(generated.id, { ...generated, expiresAtMs: nowMs, updatedAtMs: nowMs, version });
    this.#onChange();
  }

  async addFirst(digest: string, start: string, nowMs: number) {
    if (!this.#areAllRetired(nowMs)) return false;
    const nothing = { name: undefined, apiIds: undefined, expiresAtMs: undefined };
    const times = { createdAtMs: nowMs, updatedAtMs: nowMs };
    const id = generatedRootKeyId;
    this.#kept.set(id, { id, digest, start, permissions: ["*"], ...nothing, ...times, version: 1 });
    this.#onChange();
    return true;
  }

  read(rootKeyId: string): StoredRootKey | undefined {
    const kept = this.#kept.get(rootKeyId);
    if (kept === undefined) return undefined;
    const { digest: _, ...shown } = kept;
    return shown;
  }

  list({ limit, after }: PageQuery<"rootKeys">): Page<StoredRootKey> {
    const ids = [...this.#kept.keys()].sort().reverse();
    const rest = ids.filter((id) => after === undefined || id < after);
    const items = rest.slice(0, limit).map((id) => this.read(id) as StoredRootKey);
    return { items, cursor: rest.length > limit ? items.at(-1)?.id : undefined };
  }

  change(command: RootKeyCommand): Outcome<RootKeyCommand["kind"]> {
    const { atMs } = command.event;
    if (command.kind === "createRootKey") {
      const { created } = command;
      this.#kept.set(created.id, { ...created, updatedAtMs: created.createdAtMs, version: 1 });
      return { outcome: "done", changed: [] };
    }
    const before = this.#kept.get(command.id);
    if (before === undefined) return { outcome: "missing" };
    if ((command.ifVersion ?? before.version) !== before.version) return { outcome: "conflict", reason: "version" };
    this.#onChange();
    const version = before.version + 1;
    if (command.kind === "revokeRootKey") {
      this.#kept.delete(before.id);
      return { outcome: "done", changed: [] };
    }
    const given = Object.entries(command.changes).filter(([, value]) => value !== undefined);
    const values = Object.fromEntries(given.map(([name, value]) => [name, value ?? undefined]));
    this.#kept.set(before.id, { ...before, ...values, updatedAtMs: atMs, version });
    return { outcome: "done", changed: [], answer: this.read(before.id) as StoredRootKey };
  }
}

function isRetired({ id, expiresAtMs = Number.POSITIVE_INFINITY }: Kept, nowMs: number): boolean {
  return id === generatedRootKeyId && expiresAtMs <= nowMs;
}

export function isOfRootKey(command: Command): command is RootKeyCommand {
  return resourceOf(command) === "rootKey";
}
