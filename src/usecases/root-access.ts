import type { Clock } from "../ambient/clock.ts";
import { lacksPermission } from "../domain/forbidden.ts";
import { isInForce, type RootKeyVerdict } from "../domain/root-key.ts";
import { RootKeyRefused } from "../domain/root-key-refused.ts";
import type { Command } from "../store/commands.ts";
import type { Management, Outcome } from "../store/management.ts";
import type { Query } from "../store/queries.ts";
import type { CheckRootKey, RootAccess } from "../store/root-access.ts";
import { commandWithin, missingPermission, readWithin } from "./access-rules.ts";

/** How often a change is tried again that others were faster than. */
const triesMax = 10;

/** Access where the root keys are known: every call is checked immediately before it is passed on. */
export function createRootAccess(check: CheckRootKey, management: Management, clock: Pick<Clock, "nowMs">): RootAccess {
  return {
    check,
    manage(rootKey) {
      /** What the root key allows at this moment, if it allows this. */
      const requireFor = async (asked: Command | Query): Promise<RootKeyVerdict> => {
        const verdict = await check(rootKey);
        if (!isInForce(verdict, clock.nowMs())) throw new RootKeyRefused();
        const missing = missingPermission(asked, verdict.permissions);
        if (missing !== undefined) throw lacksPermission(missing);
        return verdict;
      };
      return {
        async change<Made extends Command>(command: Made, idempotency: Parameters<Management["change"]>[1]) {
          const verdict = await requireFor(command);
          const event = { ...command.event, actor: verdict.rootKeyId };
          for (let triesLeft = triesMax; ; triesLeft--) {
            const allowed = await commandWithin(command, verdict, management);
            if (allowed === undefined) return { outcome: "missing" } as Outcome<Made["kind"]>;
            const outcome = await management.change({ ...allowed, event }, idempotency);
            if (triesLeft === 0 || !isOutdated(command, outcome)) return outcome;
          }
        },
        async read(query) {
          const { apiIds } = await requireFor(query);
          return apiIds === undefined ? management.read(query) : readWithin(query, apiIds, management);
        },
      };
    },
  };
}

/** Whether a change failed because what it was checked against has changed meanwhile; the caller has named no version. */
function isOutdated(command: Command, outcome: Outcome<Command["kind"]>): boolean {
  const isVersion = outcome.outcome === "conflict" && outcome.reason === "version";
  return isVersion && (command as { readonly ifVersion?: number }).ifVersion === undefined;
}
