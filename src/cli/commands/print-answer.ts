import type { Command, CommandField } from "../../../gen/latchkey/v1/commands.ts";
import { fieldsOf, flagName, kebabCase } from "./flags.ts";
import { printTable } from "./print-table.ts";
import { printValue } from "./print-value.ts";
import { padEnd, paint, printable, type Screen } from "./screen.ts";
import type { Json } from "./set-field.ts";

export interface Printed {
  readonly stdout: string;
  /** Remarks for people, which a script that reads the output does not want. */
  readonly stderr: string;
}

/** Prints an answer for people: its single values one below the other, then a table for each list of messages. */
export function printAnswer(command: Command, answer: Json, screen: Screen): Printed {
  const fields = fieldsOf(command.response);
  const remarks: string[] = [];
  const isTable = (field: CommandField) => field.isList && field.type === "message";
  const lines = printFields(
    command,
    fields.filter((field) => !isTable(field) && !isCursor(command, field)),
    answer,
    screen,
  );
  const tables = fields.filter(isTable).flatMap((field) => {
    const rows = (answer[field.name] ?? []) as Json[];
    if (rows.length === 0) return [];
    const { text, leftOut } = printTable(fieldsOf(field.message ?? ""), rows, screen);
    if (leftOut.length > 0) remarks.push(`No room for ${leftOut.join(", ")}: --json has all.`);
    const title = field.name === command.items ? "" : `${paint(screen, "dim", kebabCase(field.name))}\n`;
    return [`${title}${text}`];
  });
  const secret = fields.find(({ name, isSecret }) => isSecret && name in answer);
  if (secret !== undefined)
    remarks.push(`This is the only copy of the ${kebabCase(secret.name)}: it is never shown again.`);
  if (command.items !== undefined && tables.length === 0) remarks.push(`No ${kebabCase(command.items)}.`);
  if (typeof answer.cursor === "string")
    remarks.push(`There is more: --cursor ${answer.cursor} for the next page, --all for everything.`);
  const stdout = [lines, ...tables].filter((text) => text !== "").join("\n");
  return { stdout, stderr: remarks.map((remark) => `${printable(remark)}\n`).join("") };
}

function isCursor(command: Command, { name }: CommandField): boolean {
  return command.items !== undefined && name === "cursor";
}

function printFields(command: Command, fields: readonly CommandField[], answer: Json, screen: Screen): string {
  const entries = fields.flatMap((field) => entriesOf(field, answer[field.name], []));
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
function entriesOf(
  field: CommandField,
  value: unknown,
  above: readonly string[],
): (readonly [name: string, text: string, field: CommandField])[] {
  const path = [...above, field.name];
  if (field.type === "message" && !field.isList && value !== undefined) {
    return fieldsOf(field.message ?? "").flatMap((inner) => entriesOf(inner, (value as Json)[inner.name], path));
  }
  const text = printValue(field, value);
  return text === "" ? [] : [[flagName(path), text, field]];
}
