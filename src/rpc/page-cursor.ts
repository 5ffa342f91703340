import { createHash } from "node:crypto";
import { invalid } from "./invalid-request.ts";

/*
 * Cursors of lists. A page goes on behind a position, most often an id, which a cursor holds in base64url: callers are to
 * send it back and not to read it, so that it may hold something else one day. It ends in a check of the list and the
 * position: a cursor that was cut short, or is of another list, would otherwise lead somewhere.
 */

export type List = "keys" | "rootKeys" | "events" | "owners" | "apis";

export function toCursor(list: List, position: string): string {
  return Buffer.from(`${position}.${checkOf(list, position)}`).toString("base64url");
}

/** The position in a cursor of the list. Throws `InvalidRequest`. */
export function fromCursor(list: List, cursor: string): string {
  const text = Buffer.from(cursor, "base64url").toString();
  const position = text.slice(0, Math.max(0, text.lastIndexOf(".")));
  // Compared as a whole, because the decoder passes over what is not base64url.
  if ((list === "apis" ? apiPattern : idPattern).test(position) && toCursor(list, position) === cursor) return position;
  throw invalid("cursor", "must be the cursor of a page of this list");
}

const idPattern = /^\w{1,64}$/;

/** When the API was created, and its id. */
const apiPattern = /^[1-9]\d{0,14} [^\0]{1,255}$/su;

function checkOf(list: List, position: string): string {
  return createHash("sha256").update(`${list} ${position}`).digest("hex").slice(0, 8);
}
