import { rowColumnsOf, rowsOf } from "./columns.ts";
import type { Command } from "./groups.ts";
import { idOf, type Output, secretOf } from "./output.ts";
import { type Printed, printAnswer, remarkOnPages } from "./print-answer.ts";
import { printBatch } from "./print-batch.ts";
import { printCsv } from "./print-csv.ts";
import { printable, type Screen } from "./screen.ts";
import type { Json } from "./set-field.ts";

/** Prints an answer in the format that the command line asks for. */
export function printOutput(command: Command, request: Json, answer: Json, output: Output, screen: Screen): Printed {
  const { format, columns } = output;
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
    default:
      return describe(command, request, answer, columns, isWhole(output) ? { ...screen, columns: undefined } : screen);
  }
}

/** Columns that somebody asks for are shown, also where the terminal has no room for them. */
function isWhole({ format, columns }: Output): boolean {
  return format === "wide" || columns !== undefined;
}

function describe(command: Command, request: Json, answer: Json, columns: Output["columns"], screen: Screen): Printed {
  if (command.isDeletion) return { stdout: `${command.name}d ${operandOf(command, request)}\n`, stderr: "" };
  return command.batch === undefined
    ? printAnswer(command, answer, screen, columns)
    : printBatch(command, answer, screen, columns);
}

/** What the command is about, which may come from a file. */
export function operandOf({ operand = "" }: Command, request: Json): string {
  return printable(String(request[operand] ?? ""));
}

function idsOf(command: Command, request: Json, answer: Json): unknown[] {
  const id = idOf(command);
  return id === undefined ? [request[command.operand ?? ""]] : rowsOf(command, answer).map((row) => row[id]);
}

function linesOf(values: readonly unknown[]): string {
  return values.flatMap((value) => (value === undefined ? [] : [`${printable(String(value))}\n`])).join("");
}

/** For a script in one line, for people in several, in which nothing controls their terminal. */
function printJson(answer: Json, { columns }: Screen): Printed {
  if (columns === undefined) return { stdout: `${JSON.stringify(answer)}\n`, stderr: "" };
  const lines = JSON.stringify(answer, null, 2).split("\n");
  return { stdout: lines.map((line) => `${printable(line)}\n`).join(""), stderr: "" };
}
