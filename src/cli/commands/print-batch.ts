import { type Column, rowColumnsOf, rowsOf } from "./columns.ts";
import type { Command } from "./groups.ts";
import { hasError } from "./import-in-batches.ts";
import type { Printed } from "./print-answer.ts";
import { filledColumns, printTable } from "./print-table.ts";
import type { Screen } from "./screen.ts";
import type { Json } from "./set-field.ts";

/** Prints what became of each of a list: of more than one request takes, only what failed. */
export function printBatch(
  command: Command,
  answer: Json,
  screen: Screen,
  columns: readonly Column[] | undefined,
): Printed {
  const { field, max } = command.batch as NonNullable<Command["batch"]>;
  const all = rowsOf(command, answer);
  const failed = all.filter(hasError);
  const shown = all.length > max ? failed : all;
  const stdout =
    shown.length === 0 ? "" : printTable(columns ?? filledColumns(rowColumnsOf(command), shown), shown, screen).text;
  return { stdout, stderr: `${all.length - failed.length} of ${all.length} ${field} were imported.\n` };
}
