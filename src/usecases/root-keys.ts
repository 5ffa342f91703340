import type { Clock } from "../ambient/clock.ts";
import { equalDigests, sha256 } from "../ambient/crypto.ts";
import type { Random } from "../ambient/random.ts";
import { formatKey } from "../domain/key-format.ts";
import { Secret } from "../domain/secret.ts";
import type { RootKeyStore } from "../store/root-key-store.ts";

/** Whether the secret is a root key, in a time that does not tell how close it came. */
export type IsRootKey = (presented: Secret) => boolean;

const rootKeyBytes = 32;

/**
 * The root keys of the settings if there are any: then only those count, so that setting one retires a generated one.
 * Otherwise the generated one, made at the first start and answered as `generated` that one time only.
 */
export async function loadRootKeys(deps: {
  configured: readonly Secret[];
  store: RootKeyStore;
  clock: Clock;
  random: Random;
  /** Puts a generated key where its owner finds it. Called before the key counts, so that a crash never loses it. */
  handOver: (rootKey: Secret) => void;
}): Promise<{ isRootKey: IsRootKey; generated: Secret | undefined }> {
  const { configured, store, clock, random, handOver } = deps;
  if (configured.length > 0) {
    return { isRootKey: matcher(configured.map((key) => sha256(key.reveal()))), generated: undefined };
  }
  const kept = await store.digests();
  if (kept.length > 0) return { isRootKey: matcher(kept), generated: undefined };

  const generated = new Secret(formatKey("lk_root", random.bytes(rootKeyBytes)).key);
  handOver(generated);
  await store.addFirst(sha256(generated.reveal()), clock.nowMs());
  return { isRootKey: matcher(await store.digests()), generated };
}

function matcher(digests: readonly string[]): IsRootKey {
  return (presented) => {
    const digest = sha256(presented.reveal());
    // Every digest is compared, also after a match.
    return digests.filter((known) => equalDigests(known, digest)).length > 0;
  };
}
