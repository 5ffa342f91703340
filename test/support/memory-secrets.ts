import { endedSecretKeptMs, isExpired } from "../../src/domain/expiry.ts";
import type { KeptSecret } from "./memory-rules.ts";

/** The secrets of each key, the newest first. */
export class MemorySecrets extends Map<string, readonly KeptSecret[]> {
  of(keyId: string): readonly KeptSecret[] {
    return this.get(keyId) ?? [];
  }

  find(digest: string): [keyId: string, secret: KeptSecret | undefined] {
    for (const [keyId, kept] of this) {
      const secret = kept.find((it) => it.digest === digest);
      if (secret !== undefined) return [keyId, secret];
    }
    return ["", undefined];
  }

  /** Of the key whose secret this is, unless it has ended by then. */
  keyIdOf(digest: string, nowMs: number): string {
    const [keyId, secret] = this.find(digest);
    return isExpired(secret?.expiresAtMs, nowMs) ? "" : keyId;
  }

  tidy(nowMs: number): void {
    const endedBy = nowMs - endedSecretKeptMs;
    for (const [keyId, kept] of this) {
      const isKept = ({ expiresAtMs }: KeptSecret) => !isExpired(expiresAtMs, endedBy);
      this.set(keyId, kept.filter(isKept));
    }
  }
}
