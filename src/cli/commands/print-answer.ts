import type { CommandField } from "../../../gen/latchkey/v1/commands.ts";
import { kebabCase } from "../parse-arguments.ts";
import { type Column, columnsToPrint, rowColumnsOf, rowsOf, valueAt } from "./columns.ts";
import { fieldsOfMessage, flagName } from "./flags.ts";
import type { CliCommand, Series } from "./groups.ts";
import { filledColumns, printTable } from "./print-table.ts";
import { printValue } from "./print-value.ts";
import { padEnd, paint, printable, type Screen, widthOf } from "./screen.ts";
import type { JsonMessage } from "./set-field.ts";

/** An answer, and how it is printed. */
export interface ToPrint {
  readonly command: CliCommand;
  readonly request: JsonMessage;
  readonly answer: JsonMessage;
  /** Those that somebody asks for. */
  readonly columns: readonly Column[] | undefined;
  readonly screen: Screen;
}

export interface Printed {
  readonly stdout: string;
  /** Remarks for people, which a script that reads the output does not want. */
  readonly stderr: string;
}

/**
 * Prints an answer for people: its single values one below the other, then a table for each list of messages. With
 * `columns`, these only.
 */
export function printAnswer({ command, answer, screen, columns }: ToPrint): Printed {
  const fields = fieldsOfMessage(command.response);
  const remarks: string[] = [];
  const isList = command.items !== undefined;
  if (columns !== undefined && !isList) {
    const entries = columns.map((column): Entry => {
      return [column.name, printValue(column.field, valueAt(answer, column)), column.field];
    });
    return { stdout: printEntries(command, entries, screen), stderr: "" };
  }
  const isTable = (field: CommandField) => field.isList && field.type === "message";
  const single = fields.filter((field) => !isTable(field) && !(isList && field.name === "cursor"));
  const entries = single.flatMap((field) => entriesOf(field, answer[field.name], []));
  const lines = printEntries(command, entries, screen);
  const tables = fields.filter(isTable).flatMap((field) => {
    const rows = (answer[field.name] ?? []) as JsonMessage[];
    if (rows.length === 0) return [];
    const own = field.name === command.items ? columns : undefined;
    const inRow = fieldsOfMessage(field.message ?? "").filter(({ name }) => name !== command.series?.points);
    const printed = own ?? filledColumns(columnsToPrint(inRow), rows);
    const { text, leftOut } = printTable(printed, rows, screen);
    if (leftOut.length > 0) remarks.push(`No room for ${leftOut.join(", ")}: --output wide has all.`);
    const title = field.name === command.items ? "" : `${paint(screen, "dim", kebabCase(field.name))}\n`;
    return [`${title}${text}`];
  });
  const secret = fields.find(({ name, isSecret }) => isSecret && name in answer);
  if (secret !== undefined)
    remarks.push(`This is the only copy of the ${kebabCase(secret.name)}: it is never shown again.`);
  if (command.items !== undefined && tables.length === 0) remarks.push(`No ${kebabCase(command.items)}.`);
  if (command.series !== undefined) tables.push(printSeries(command, command.series, answer, screen));
  const stdout = [lines, ...tables].filter((text) => text !== "").join("\n");
  return { stdout, stderr: remarks.map((remark) => `${printable(remark)}\n`).join("") + remarkOnPages(answer) };
}

const barMax = 40;

/** A row for each point, and on a terminal a bar. A single point of each is in the table above. */
function printSeries(command: CliCommand, { list, points, bar }: Series, answer: JsonMessage, screen: Screen): string {
  const rows = rowsOf(command, answer);
  if (rows.length <= (answer[list] as readonly unknown[]).length) return "";
  const { text } = printTable(filledColumns(rowColumnsOf(command), rows), rows, screen);
  const [head, ...lines] = text.trimEnd().split("\n");
  const width = Math.max(...lines.map(widthOf));
  const room = Math.min(barMax, (screen.columns ?? 0) - width - 2);
  const most = Math.max(1, ...rows.map((row) => row[bar] as number));
  const bars = lines.map((line, i) => {
    const length = Math.round(((rows[i]?.[bar] as number) / most) * Math.max(0, room));
    return length === 0 ? line : `${padEnd(line, width)}  ${"█".repeat(length)}`;
  });
  return [paint(screen, "dim", kebabCase(points)), head, ...bars].map((line) => `${line}\n`).join("");
}

/** How to get what follows a page, or nothing. */
export function remarkOnPages({ cursor }: JsonMessage): string {
  if (typeof cursor !== "string") return "";
  return `There is more: --cursor ${printable(cursor)} for the next page, --all for everything.\n`;
}

type Entry = readonly [name: string, text: string, field: CommandField];

function printEntries(command: CliCommand, entries: readonly Entry[], screen: Screen): string {
  const width = Math.max(...entries.map(([name]) => name.length));
  return entries
    .map(([name, text, field]) => {
      const colour = field.isSecret
        ? "yellow"
        : field.name !== command.outcome
          ? undefined
          : text === "true"
            ? "green"
            : "red";
      return `${paint(screen, "dim", padEnd(name, width))}  ${colour ? paint(screen, colour, text) : text}\n`;
    })
    .join("");
}

/** A message is printed as its fields, each by the name of its flag. */
function entriesOf(field: CommandField, value: unknown, above: readonly string[]): Entry[] {
  const path = [...above, field.name];
  if (field.type === "message" && !field.isList && value !== undefined) {
    return fieldsOfMessage(field.message ?? "").flatMap((inner) =>
      entriesOf(inner, (value as JsonMessage)[inner.name], path),
    );
  }
  const text = printValue(field, value);
  return text === "" ? [] : [[flagName(path), text, field]];
}
