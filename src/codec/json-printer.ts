import { isEmptyObject } from "./frame-writer.ts";

const quote = 0x22;
const backslash = 0x5c;
const firstPrintable = 0x20;
const asciiEnd = 0x80;

/** Prints like `JSON.stringify`, but faster for a text without escapes. */
export function printText(value: string): string {
  if (value.length > 64) return JSON.stringify(value);
  for (let i = 0; i < value.length; i++) {
    const code = value.charCodeAt(i);
    if (code < firstPrintable || code >= asciiEnd || code === quote || code === backslash) return JSON.stringify(value);
  }
  return `"${value}"`;
}

/** Prints free JSON, which is mostly empty. */
export function printStruct(value: object): string {
  return isEmptyObject(value) ? "{}" : JSON.stringify(value);
}

/** Prints like ProtoJSON: NaN and Infinity, which JSON does not have, become strings. */
export function printDouble(value: number): string {
  return Number.isFinite(value) ? `${value}` : `"${value}"`;
}

/** Prints a list of messages. An absent one is empty. */
export function printList<Message>(items: readonly Message[] | undefined, print: (item: Message) => string): string {
  let json = "[";
  if (items !== undefined) for (const item of items) json += json === "[" ? print(item) : `,${print(item)}`;
  return `${json}]`;
}
