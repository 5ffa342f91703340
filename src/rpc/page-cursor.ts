import { InvalidRequest } from "./invalid-request.ts";

/*
 * Cursors of lists. A page goes on behind an id, which a cursor holds in base64url: callers are to send it back and not to
 * read it, so that it may hold something else one day.
 */

export function toCursor(id: string): string {
  return Buffer.from(id).toString("base64url");
}

/** The id in a cursor of the list of such ids. */
export function fromCursor(kind: "key" | "root" | "evt", cursor: string): string {
  const id = Buffer.from(cursor, "base64url").toString();
  // Compared, because the decoder passes over what is not base64url.
  if (id.startsWith(`${kind}_`) && /^\w{1,64}$/.test(id) && toCursor(id) === cursor) return id;
  throw new InvalidRequest([{ path: "cursor", message: "must be the cursor of a page of this list" }]);
}
