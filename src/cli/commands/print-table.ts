import type { CommandField } from "../../../gen/latchkey/v1/commands.ts";
import { kebabCase } from "./flags.ts";
import { printValue } from "./print-value.ts";
import { padEnd, paint, type Screen, truncate, widthOf } from "./screen.ts";
import type { Json } from "./set-field.ts";

const gap = "  ";

interface Column {
  readonly title: string;
  readonly cells: readonly string[];
  readonly width: number;
}

/**
 * Prints rows in columns, one for each field that some row has: single values first, then those that hold others. On a
 * terminal those that have no room are left out, and named.
 */
export function printTable(
  fields: readonly CommandField[],
  rows: readonly Json[],
  screen: Screen,
): { readonly text: string; readonly leftOut: readonly string[] } {
  const ordered = fields.toSorted((a, b) => rankOf(a) - rankOf(b));
  const columns = ordered
    .map((field) => columnOf(field, rows))
    .filter(({ cells }) => cells.some((cell) => cell !== ""));
  const shown = fitting(columns, screen.columns);
  const lines = rows.map((_, i) => lineOf(shown.map(({ cells, width }) => [cells[i] as string, width])));
  const head = paint(screen, "bold", lineOf(shown.map(({ title, width }) => [title, width])));
  const leftOut = columns.map(({ title }) => title).filter((title) => !shown.some((each) => each.title === title));
  return {
    text: [head, ...lines].map((line) => `${line}\n`).join(""),
    leftOut: leftOut.map((title) => title.toLowerCase()),
  };
}

/** What people look for comes first: when there is no room, the last are left out. */
function rankOf({ name, type, isList }: CommandField): number {
  if (isList || type === "object" || type === "message") return 2;
  return name === "updatedAt" || name === "version" ? 1 : 0;
}

function columnOf(field: CommandField, rows: readonly Json[]): Column {
  const title = kebabCase(field.name).toUpperCase();
  const cells = rows.map((row) => printValue(field, row[field.name]));
  return { title, cells, width: Math.max(title.length, ...cells.map(widthOf)) };
}

/** The first column always, and each other one that there is room for. */
function fitting(columns: readonly Column[], width: number | undefined): readonly Column[] {
  if (width === undefined) return columns;
  const [first, ...others] = columns;
  if (first === undefined) return [];
  const shown = [{ ...first, width: Math.min(first.width, width) }];
  let left = width - first.width;
  for (const column of others) {
    if (column.width + gap.length > left) continue;
    shown.push(column);
    left -= column.width + gap.length;
  }
  return shown;
}

function lineOf(cells: readonly (readonly [text: string, width: number])[]): string {
  return cells
    .map(([text, width]) => padEnd(truncate(text, width), width))
    .join(gap)
    .trimEnd();
}
