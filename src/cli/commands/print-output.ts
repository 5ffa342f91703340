import { type Column, rowColumnsOf, rowsOf, valueAt } from "./columns.ts";
import type { CliCommand } from "./groups.ts";
import { hasError } from "./import-in-batches.ts";
import { idOf, type Output, secretOf } from "./output.ts";
import { type Printed, printAnswer, remarkOnPages, type ToPrint } from "./print-answer.ts";
import { filledColumns, printTable } from "./print-table.ts";
import { printValue } from "./print-value.ts";
import { printable, type Screen } from "./screen.ts";
import type { JsonMessage } from "./set-field.ts";

/** Prints an answer in the format that the command line asks for. */
export function printOutput(format: Output["format"], toPrint: ToPrint): Printed {
  const { command, request, answer, columns, screen } = toPrint;
  switch (format) {
    case "json":
      return printJson(answer, screen);
    case "csv":
      return {
        stdout: printCsv(columns ?? rowColumnsOf(command), rowsOf(command, answer)),
        stderr: remarkOnPages(answer),
      };
    case "name":
      return { stdout: linesOf(idsOf(command, request, answer)), stderr: remarkOnPages(answer) };
    case "key":
      return { stdout: linesOf([answer[secretOf(command) ?? ""]]), stderr: "" };
    default: {
      // Columns that somebody asks for are printed, also where the terminal has no room for them.
      const isWhole = format === "wide" || columns !== undefined;
      return describe(isWhole ? { ...toPrint, screen: { ...screen, columns: undefined } } : toPrint);
    }
  }
}

function describe(toPrint: ToPrint): Printed {
  const { command, request } = toPrint;
  if (command.isDeletion) return { stdout: `${command.name}d ${operandOf(command, request)}\n`, stderr: "" };
  return command.batch === undefined ? printAnswer(toPrint) : printBatch(toPrint);
}

/** Prints what became of each of a list: of more than one request takes, only what failed. */
function printBatch({ command, answer, screen, columns }: ToPrint): Printed {
  const { field, max } = command.batch as NonNullable<CliCommand["batch"]>;
  const all = rowsOf(command, answer);
  const failed = all.filter(hasError);
  const printed = all.length > max ? failed : all;
  const stdout =
    printed.length === 0
      ? ""
      : printTable(columns ?? filledColumns(rowColumnsOf(command), printed), printed, screen).text;
  return { stdout, stderr: `${all.length - failed.length} of ${all.length} ${field} were imported.\n` };
}

/** What the command is about, which may come from a file. */
export function operandOf({ operand = "" }: CliCommand, request: JsonMessage): string {
  return printable(String(request[operand] ?? ""));
}

function idsOf(command: CliCommand, request: JsonMessage, answer: JsonMessage): unknown[] {
  const id = idOf(command);
  return id === undefined ? [request[command.operand ?? ""]] : rowsOf(command, answer).map((row) => row[id]);
}

function linesOf(values: readonly unknown[]): string {
  return values.flatMap((value) => (value === undefined ? [] : [`${printable(String(value))}\n`])).join("");
}

/** For a script in one line, for people in several, in which nothing controls their terminal. */
function printJson(answer: JsonMessage, { columns }: Screen): Printed {
  if (columns === undefined) return { stdout: `${JSON.stringify(answer)}\n`, stderr: "" };
  const lines = JSON.stringify(answer, null, 2).split("\n");
  return { stdout: lines.map((line) => `${printable(line)}\n`).join(""), stderr: "" };
}

/** What spreadsheets take for the beginning of a formula, also in wide characters. */
const formula = /^[=+\-@＝＋－＠]/;

/** Prints rows by RFC 4180, with a head. Values are those of tables. */
export function printCsv(columns: readonly Column[], rows: readonly JsonMessage[]): string {
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
