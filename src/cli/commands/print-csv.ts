import { type Column, valueAt } from "./columns.ts";
import { printValue } from "./print-value.ts";
import type { Json } from "./set-field.ts";

/** What spreadsheets take for the beginning of a formula, also in wide characters. */
const formula = /^[=+\-@＝＋－＠]/;

/** Prints rows by RFC 4180, with a head. Values are those of tables. */
export function printCsv(columns: readonly Column[], rows: readonly Json[]): string {
  const head = columns.map(({ name }) => name);
  const lines = rows.map((row) => columns.map((column) => cellOf(column, valueAt(row, column))));
  return [head, ...lines].map((cells) => `${cells.map(quote).join(",")}\r\n`).join("");
}

/** Texts come from callers: one that would be a formula gets an apostrophe in front, which spreadsheets do not show. */
function cellOf({ field }: Column, value: unknown): string {
  const text = printValue(field, value);
  return field.type !== "integer" && formula.test(text) ? `'${text}` : text;
}

/** Also where only some programs need it, such as those that take a semicolon for a separator. */
function quote(text: string): string {
  return /^[\w .:-]*$/.test(text) ? text : `"${text.replaceAll('"', '""')}"`;
}
