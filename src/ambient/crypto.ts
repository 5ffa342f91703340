import { createCipheriv, createDecipheriv, createHmac, hash, hkdfSync, timingSafeEqual } from "node:crypto";

/** SHA-256 as base64url: how secrets are stored and looked up. */
export function sha256(text: string): string {
  return hash("sha256", text, "base64url");
}

/** A SHA-256 digest as `sha256` writes it, from hex or from base64 of either alphabet, with or without padding. */
export function toDigest(text: string): string {
  return Buffer.from(text, /^[0-9A-Fa-f]{64}$/.test(text) ? "hex" : "base64").toString("base64url");
}

/** SHA-1 as hex: how Redis names scripts. Not for secrets. */
export function sha1(text: string): string {
  return hash("sha1", text, "hex");
}

/** Whether two digests are equal, in constant time. */
export function equalDigests(a: string, b: string): boolean {
  return a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b));
}

/** Derives a 32-byte key for one purpose. The secret must have enough entropy itself. */
export function deriveKey(secret: string, salt: string, purpose: string): Uint8Array {
  return new Uint8Array(hkdfSync("sha256", secret, salt, purpose, 32));
}

export function hmac(key: Uint8Array, text: string): string {
  return createHmac("sha256", key).update(text).digest("base64url");
}

const nonceLength = 12;
const tagLength = 16;

/** Encrypts with AES-256-GCM. The nonce must be 12 fresh random bytes; it is stored before the ciphertext. */
export function seal(key: Uint8Array, nonce: Uint8Array, plaintext: string): string {
  const cipher = createCipheriv("aes-256-gcm", key, nonce);
  return Buffer.concat([nonce, cipher.update(plaintext, "utf8"), cipher.final(), cipher.getAuthTag()]).toString(
    "base64url",
  );
}

/** Decrypts what `seal` made. Throws if the key is wrong or the text was changed. */
export function unseal(key: Uint8Array, sealed: string): string {
  const bytes = Buffer.from(sealed, "base64url");
  const decipher = createDecipheriv("aes-256-gcm", key, bytes.subarray(0, nonceLength));
  decipher.setAuthTag(bytes.subarray(-tagLength));
  return decipher.update(bytes.subarray(nonceLength, -tagLength), undefined, "utf8") + decipher.final("utf8");
}
