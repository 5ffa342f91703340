/** What output goes to. */
export interface Screen {
  /** Undefined: not a terminal, and lines can be of any length. */
  readonly columns: number | undefined;
  readonly hasColours: boolean;
}

type Colour = keyof typeof codes;

const codes = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33 } as const;

export function screenOf(stream: NodeJS.WriteStream, environment: NodeJS.ProcessEnv): Screen {
  if (!stream.isTTY) return { columns: undefined, hasColours: false };
  // A terminal that does not know its own width says 0.
  const columns = stream.columns || 80;
  return { columns, hasColours: !environment.NO_COLOR && environment.TERM !== "dumb" };
}

export function paint({ hasColours }: Screen, colour: Colour, text: string): string {
  return hasColours && text !== "" ? `\u001b[${codes[colour]}m${text}\u001b[0m` : text;
}

/** Made when it is needed: that takes tens of milliseconds. */
let segmenter: Intl.Segmenter | undefined;

/** What people take for single characters. */
function charactersOf(text: string): string[] {
  segmenter ??= new Intl.Segmenter("en", { granularity: "grapheme" });
  return Array.from(segmenter.segment(text), ({ segment }) => segment);
}

/** Characters that take two columns. */
const wide =
  /\p{Emoji_Presentation}|[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]/u;

/** How many columns a text takes. */
export function widthOf(text: string): number {
  if (/^[\x20-\x7e]*$/.test(text)) return text.length;
  return charactersOf(text).reduce((width, character) => width + (wide.test(character) ? 2 : 1), 0);
}

export function padEnd(text: string, width: number): string {
  return text + " ".repeat(Math.max(0, width - widthOf(text)));
}

/** The text, or its beginning with an ellipsis if it takes more columns than that. */
export function truncate(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  let kept = "";
  for (const character of charactersOf(text)) {
    if (widthOf(kept + character) > width - 1) break;
    kept += character;
  }
  return `${kept}…`;
}

/** Texts come from callers: characters that would control the terminal, or break a line, are shown as escapes. */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Zl}\p{Zp}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, (character) => {
    const code = character.codePointAt(0) ?? 0;
    return `\\u${code.toString(16).padStart(4, "0")}`;
  });
}
