import type { RateLimit } from "./rate-limit.ts";

/*
 * A subject is the text under which something is counted. Limiters and ledgers know subjects and rules, and nothing else of
 * what they count. No two things share a subject:
 *
 *   key_…              the limit of a key that has no name, and the key's counter: its id, which has no slash
 *   key_…/name         its limit with that name
 *   c/owner            the counter of an owner
 *   o/name/owner       a limit of an owner; names have no slash
 *   f/…                a free-standing limit, which belongs to nobody
 */

export function limitOfKey(keyId: string, name: string): string {
  return `${keyId}/${name}`;
}

export function counterOfOwner(ownerId: string): string {
  return `c/${ownerId}`;
}

export function limitOfOwner(ownerId: string, name: string): string {
  return `o/${name}/${ownerId}`;
}

export interface FreeStanding {
  readonly namespace: string;
  readonly identifier: string;
  readonly apiId: string | undefined;
}

/** With mode and duration, so that all who count under it differ in their limit only. Lengths keep the texts apart. */
export function freeStandingSubject(
  { namespace, identifier, apiId }: FreeStanding,
  { mode, durationMs }: Pick<RateLimit, "mode" | "durationMs">,
): string {
  const api = apiId === undefined ? "-" : `${apiId.length}/${apiId}`;
  return `f/${mode === "local" ? "l" : "s"}${durationMs}/${namespace.length}/${namespace}/${api}/${identifier}`;
}

/** The holder of a limit with a name: a key by its id, or an owner by its counter. Undefined for any other subject. */
export function holderOfLimit(subject: string): string | undefined {
  const slash = subject.indexOf("/");
  if (slash < 0 || isFreeStanding(subject)) return undefined;
  if (!subject.startsWith("o/")) return subject.slice(0, slash);
  return counterOfOwner(subject.slice(subject.indexOf("/", slash + 1) + 1));
}

/** Strangers choose what free-standing limits count: these must not take the places of others. */
export function isFreeStanding(subject: string): boolean {
  return subject.startsWith("f/");
}
