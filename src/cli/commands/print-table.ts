import { type Column, valueAt } from "./columns.ts";
import { printValue } from "./print-value.ts";
import { padEnd, paint, type Screen, truncate, widthOf } from "./screen.ts";
import type { JsonMessage } from "./set-field.ts";

const gap = "  ";

interface PrintedColumn {
  readonly title: string;
  readonly cells: readonly string[];
  readonly width: number;
}

/** Prints rows. Columns for which a terminal has no room are left out, and named. */
export function printTable(
  wanted: readonly Column[],
  rows: readonly JsonMessage[],
  screen: Screen,
): { readonly text: string; readonly leftOut: readonly string[] } {
  const columns = wanted.map((column) => printColumn(column, rows));
  const fitted = fitting(columns, screen.columns);
  const lines = rows.map((_, i) => lineOf(fitted.map(({ cells, width }) => [cells[i] as string, width])));
  const head = paint(screen, "bold", lineOf(fitted.map(({ title, width }) => [title, width])));
  const leftOut = columns.map(({ title }) => title).filter((title) => !fitted.some((each) => each.title === title));
  return {
    text: [head, ...lines].map((line) => `${line}\n`).join(""),
    leftOut: leftOut.map((title) => title.toLowerCase()),
  };
}

/** The columns that some row has a value for: single values first, then those that hold others. */
export function filledColumns(columns: readonly Column[], rows: readonly JsonMessage[]): Column[] {
  return columns
    .filter((column) => rows.some((row) => printValue(column.field, valueAt(row, column)) !== ""))
    .toSorted((a, b) => rankOf(a) - rankOf(b));
}

/** What people look for comes first: when there is no room, the last are left out. */
function rankOf({ field: { name, type, isList } }: Column): number {
  if (isList || type === "object" || type === "message") return 2;
  return name === "updatedAt" || name === "version" ? 1 : 0;
}

function printColumn(column: Column, rows: readonly JsonMessage[]): PrintedColumn {
  const title = column.name.toUpperCase();
  const cells = rows.map((row) => printValue(column.field, valueAt(row, column)));
  return { title, cells, width: Math.max(title.length, ...cells.map(widthOf)) };
}

/** The first column always, and each other one that there is room for. */
function fitting(columns: readonly PrintedColumn[], width: number | undefined): readonly PrintedColumn[] {
  if (width === undefined) return columns;
  const [first, ...others] = columns;
  if (first === undefined) return [];
  const fitted = [{ ...first, width: Math.min(first.width, width) }];
  let left = width - first.width;
  for (const column of others) {
    if (column.width + gap.length > left) continue;
    fitted.push(column);
    left -= column.width + gap.length;
  }
  return fitted;
}

function lineOf(cells: readonly (readonly [text: string, width: number])[]): string {
  return cells
    .map(([text, width]) => padEnd(truncate(text, width), width))
    .join(gap)
    .trimEnd();
}
