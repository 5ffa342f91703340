import type { CommandField } from "../../../gen/latchkey/v1/commands.ts";
import { shellWord } from "../../domain/shell-word.ts";
import { kebabCase } from "../parse-arguments.ts";
import { fieldsOfMessage, flagName } from "./flags.ts";
import type { CliCommand, CommandGroup } from "./groups.ts";
import { printDuration } from "./parse-value.ts";
import type { JsonMessage } from "./set-field.ts";

/** The line that sends the example of a command's request. A test runs each of them. */
export function exampleLine(group: CommandGroup, command: CliCommand): string {
  return ["latchkey", group.name, command.name, ...argumentsOf(command)].map(shellWord).join(" ");
}

function argumentsOf({ request, operand, batch, example, isDeletion }: CliCommand): string[] {
  const fields = fieldsOfMessage(request).filter(
    ({ name }) => name in example && name !== operand && name !== batch?.field,
  );
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
      return fieldsOfMessage(field.message ?? "").flatMap((inner) =>
        inner.name in (value as JsonMessage) ? flagsFor(inner, (value as JsonMessage)[inner.name], path) : [],
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
