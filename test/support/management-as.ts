import type { Clock } from "../../src/ambient/clock.ts";
import { isInForce, RootKeyRefused } from "../../src/domain/root-key.ts";
import type { Secret } from "../../src/domain/secret.ts";
import type { Management } from "../../src/store/management.ts";
import type { CheckRootKey } from "../../src/store/root-access.ts";
import { managementWithin } from "../../src/usecases/management-within.ts";

/** What the holder of a root key can do, each step as a call of its own: the root key is checked first. */
export function managementAs(check: CheckRootKey, management: Management, clock: Pick<Clock, "nowMs">) {
  const within = async (rootKey: Secret): Promise<Management> => {
    const verdict = await check(rootKey);
    if (!isInForce(verdict, clock.nowMs())) throw new RootKeyRefused();
    return managementWithin(management, verdict);
  };
  const manage = (rootKey: Secret): Management => ({
    change: async (...args) => (await within(rootKey)).change(...args),
    read: async (query) => (await within(rootKey)).read(query),
  });
  return { check, manage };
}
