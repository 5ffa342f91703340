import { unlimitedRootKey } from "../../src/domain/root-key.ts";
import { Secret } from "../../src/domain/secret.ts";
import { Unavailable } from "../../src/domain/unavailable.ts";
import { createRootAccess } from "../../src/usecases/root-access.ts";
import { sampleKey } from "../contract/sample-keys.ts";
import { createKey } from "./manage.ts";
import { createMemoryStore } from "./memory-store.ts";
import type { TestClock } from "./test-clock.ts";

export const sampleRootKey = new Secret("root key");

/** Access to a store in memory with one key. `valid` are the root keys; undefined: they are not known. */
export async function sampleRootAccess(clock: TestClock) {
  const store = createMemoryStore(clock);
  const key = sampleKey(clock);
  await createKey(store.management, key);
  const root: { valid: string[] | undefined } = { valid: [sampleRootKey.reveal()] };
  const check = (presented: Secret) => {
    if (root.valid === undefined) throw new Unavailable("the root keys are not known yet");
    return root.valid.includes(presented.reveal()) ? unlimitedRootKey("root_sample") : undefined;
  };
  return { store, key, root, access: createRootAccess(check, store.management, clock) };
}
