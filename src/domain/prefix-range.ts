/** Above every text of up to 255 characters, compared byte by byte in UTF-8. */
const lastText = "\u{10ffff}".repeat(256);

/**
 * The first text behind all that begin with the prefix, compared byte by byte in UTF-8, which is the order of code points.
 */
export function endOfPrefix(prefix: string): string {
  const characters = [...prefix];
  while (characters.length > 0) {
    const next = characterAfter((characters.pop() as string).codePointAt(0) as number);
    if (next !== undefined) return characters.join("") + next;
  }
  return lastText;
}

function characterAfter(codePoint: number): string | undefined {
  if (codePoint === 0x10ffff) return undefined;
  // Surrogates are no characters.
  return String.fromCodePoint(codePoint + 1 >= 0xd800 && codePoint + 1 <= 0xdfff ? 0xe000 : codePoint + 1);
}
