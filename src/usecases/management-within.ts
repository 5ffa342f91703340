import type { RootKeyVerdict } from "../domain/root-key.ts";
import type { Command } from "../store/commands.ts";
import type { Management, Outcome } from "../store/management.ts";
import type { Answers } from "../store/queries.ts";
import { commandWithin, readWithin } from "./access-rules.ts";
import { findMissingOwner, NoSuchOwner } from "./required-owners.ts";

export type { Answers, Management };

/** How often a change is tried again that others were faster than. */
const triesMax = 10;

/**
 * A `Management` that is restricted to what this root key allows. It rejects with `Forbidden` what the root key may not do:
 * then nothing was changed. What belongs to APIs that the root key is not for is missing.
 */
export function managementWithin(management: Management, verdict: RootKeyVerdict): Management {
  const { rootKeyId: actor, apiIds } = verdict;
  const read: Management["read"] = async (query) =>
    apiIds === undefined ? management.read(query) : readWithin(query, apiIds, management);
  return {
    read,
    async change<Made extends Command>(command: Made, idempotency: Parameters<Management["change"]>[1]) {
      const event = { ...command.event, actor };
      // Unless it was made before: then its first answer counts, and it is not made again.
      const missing = await findMissingOwner(command, { read });
      if (missing !== undefined && !(await isRepeated(idempotency)))
        throw new NoSuchOwner(command.kind === "importKeys" ? missing : undefined);
      for (let triesLeft = triesMax; ; triesLeft--) {
        const allowed = await commandWithin(command, verdict, management);
        if (allowed === undefined) return { outcome: "missing" } as Outcome<Made["kind"]>;
        const outcome = await management.change({ ...allowed, event }, idempotency);
        if (triesLeft === 0 || !isOutdated(command, outcome)) return outcome;
      }
    },
  };

  async function isRepeated(record: Parameters<Management["change"]>[1]): Promise<boolean> {
    if (record === undefined) return false;
    const { lookup, createdAtMs: nowMs } = record;
    return (await management.read({ kind: "keptAnswer", lookup, nowMs })) !== undefined;
  }
}

/** Whether a change failed because what it was checked against has changed meanwhile; the caller has named no version. */
function isOutdated(command: Command, outcome: Outcome<Command["kind"]>): boolean {
  const isVersion = outcome.outcome === "conflict" && outcome.reason === "version";
  return isVersion && (command as { readonly ifVersion?: number }).ifVersion === undefined;
}
