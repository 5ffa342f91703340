import { X509Certificate } from "node:crypto";
import { Secret } from "../domain/secret.ts";

/** Whether two values of settings are equal. */
export function sameValue(a: unknown, b: unknown): boolean {
  if (a instanceof Secret && b instanceof Secret) return a.reveal() === b.reveal();
  if (a instanceof X509Certificate && b instanceof X509Certificate) return a.raw.equals(b.raw);
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return a === b;
  const names = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...names].every((name) => sameValue(Reflect.get(a, name), Reflect.get(b, name)));
}
