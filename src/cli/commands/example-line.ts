import type { CommandField } from "../../../gen/latchkey/v1/commands.ts";
import { fieldsOf, flagName, kebabCase } from "./flags.ts";
import type { Command, CommandGroup } from "./groups.ts";
import { printDuration } from "./parse-value.ts";
import type { Json } from "./set-field.ts";

/** The line that sends the example of a command's request. A test runs each of them. */
export function exampleLine(group: CommandGroup, command: Command): string {
  return ["latchkey", group.name, command.name, ...argumentsOf(command)].map(quote).join(" ");
}

function argumentsOf({ request, operand, batch, example, isDeletion }: Command): string[] {
  const fields = fieldsOf(request).filter(({ name }) => name in example && name !== operand && name !== batch?.field);
  return [
    ...(operand !== undefined && operand in example ? [String(example[operand])] : []),
    ...(batch === undefined ? [] : [`${batch.field}.jsonl`]),
    ...fields.flatMap((field) => flagsFor(field, example[field.name], [])),
    ...(isDeletion ? ["--yes"] : []),
  ];
}

function flagsFor(field: CommandField, value: unknown, above: readonly string[]): string[] {
  const path = [...above, field.name];
  const flag = `--${flagName(path)}`;
  if (value === null) return ["--unset", flagName(path)];
  if (Array.isArray(value)) {
    const { isList: _, ...element } = field;
    return value.flatMap((each) => flagsFor(element, each, above));
  }
  if (field.isSecret) return [flag, `@${kebabCase(field.name)}.txt`];
  switch (field.type) {
    case "boolean":
      return value === true ? [flag] : [`${flag}=false`];
    case "message":
      return fieldsOf(field.message ?? "").flatMap((inner) =>
        inner.name in (value as Json) ? flagsFor(inner, (value as Json)[inner.name], path) : [],
      );
    case "object":
      return [flag, JSON.stringify(value)];
    default:
      return [flag, printNumber(field, value)];
  }
}

function printNumber({ unit }: CommandField, value: unknown): string {
  if (unit === "milliseconds") return printDuration(value as number);
  return unit === "moment" ? new Date(value as number).toISOString().replace(/T00:00:00\.000Z$/, "") : String(value);
}

/** As a shell takes it for one word. */
function quote(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
