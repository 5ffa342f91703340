import type { NewKey } from "../../src/domain/key.ts";
import type { StoredOwner } from "../../src/domain/owner.ts";
import {
  type Command,
  type DeleteApiKeys,
  type EndOwnerKeys,
  fieldsOf,
  isDisabling,
  methodOf,
} from "../../src/store/commands.ts";
import type { Outcome } from "../../src/store/management.ts";
import type { KeptEvent } from "./memory-lists.ts";

export type EndingCommand = DeleteApiKeys | EndOwnerKeys;

/** What the plain store has: keys, the owner with the id, and whether the API with the id takes no more keys. */
interface Stored {
  readonly keys: readonly NewKey[];
  readonly owner: StoredOwner | undefined;
  readonly isStopped: boolean;
}

/** The keys that one piece of a deletion ends, or why it ends none. */
export function keysToEnd(
  command: EndingCommand,
  { keys, owner, isStopped }: Stored,
): { readonly ended: readonly NewKey[]; readonly cursor: string | undefined } | Outcome {
  const { id, after = "", limit } = command;
  const { ifVersion } = command;
  let isMeant = (key: NewKey) => key.apiId === id;
  if (command.kind === "endOwnerKeys") {
    if (owner?.createdAtMs !== command.madeAtMs) return { outcome: "missing" };
    if ((ifVersion ?? owner.version) !== owner.version) return { outcome: "conflict", reason: "version" };
    isMeant = (key) => key.ownerId === id && (command.apiId ?? key.apiId) === key.apiId;
  } else if (!isStopped) return { outcome: "missing" };
  const behind = keys.filter((key) => isMeant(key) && key.id > after).sort((a, b) => (a.id < b.id ? -1 : 1));
  const examined = behind.slice(0, limit);
  const ended = examined.filter(({ enabled }) => enabled || !isDisabling(command));
  return { ended, cursor: examined.length === limit ? examined.at(-1)?.id : undefined };
}

export function eventOfEnded(command: EndingCommand, { id, apiId }: NewKey, version: number): KeptEvent {
  const [method, fields] = [methodOf(command), fieldsOf(command)];
  return { ...command.event, id: `${command.event.id}_${id}`, method, targetId: id, apiId, fields, version };
}

export function isEnding(command: Command): command is EndingCommand {
  return command.kind === "deleteApiKeys" || command.kind === "endOwnerKeys";
}
