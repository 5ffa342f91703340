/** Kinds of calls and answers that are always small and not worth the look. */
const smallKinds: ReadonlySet<string | undefined> = new Set(["permits", "inspection", "charge"]);

/** How many bytes a call or an answer takes in a message, about. */
export function bytesOf(sent: { readonly case: string | undefined; readonly value?: unknown } | undefined): number {
  return smallKinds.has(sent?.case) ? 200 : approximateBytes(sent?.value);
}

/** Hardly ever less than it takes: a character can take three bytes. */
function approximateBytes(value: unknown): number {
  if (typeof value === "string") return 3 * value.length + overheadBytes;
  if (value instanceof Uint8Array) return value.length + overheadBytes;
  if (typeof value !== "object" || value === null) return overheadBytes;
  return Object.values(value).reduce((sum: number, inner) => sum + approximateBytes(inner), overheadBytes);
}

/** A tag, and a length or a number. */
const overheadBytes = 10;
