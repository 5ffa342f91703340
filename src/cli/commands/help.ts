import type { CommandField } from "../../../gen/latchkey/v1/commands.ts";
import { exampleLine } from "./example-line.ts";
import { commonFlagsOf, type Flag, flagsOf, kebabCase } from "./flags.ts";
import { type Command, type CommandGroup, groups } from "./groups.ts";
import { padEnd, widthOf } from "./screen.ts";

/** What the process exits with, as the help says it. */
const exitCodeHelp = `Exit codes: 0 done; 1 refused, or failed, also a key that is not valid; 2 wrong use, nothing was sent;
3 the service cannot be reached or cannot decide: try again later.`;

/** The commands that call a service, for the help of the whole program. */
export function clientUsage(): string {
  const columns = helpColumns();
  const lines = [
    ...groups.map(({ name, summary }): [string, string] => [`  latchkey ${name} …`, summary]),
    ["  latchkey profile …", "Keeps the address and the root key of a service."] as [string, string],
    ["  latchkey completion SHELL", "Prints a script that completes commands in bash, zsh or fish."] as [
      string,
      string,
    ],
  ];
  return [
    "Commands that call a service, at LATCHKEY_URL or by a profile; each has --help:",
    printPairs(lines, columns),
    "",
    exitCodeHelp,
  ].join("\n");
}

export function groupHelp(group: CommandGroup): string {
  const columns = helpColumns();
  const pairs = group.commands.map(({ name, summary }): [string, string] => [
    `  latchkey ${group.name} ${name}`,
    summary,
  ]);
  return [
    wrap(group.details, columns),
    "",
    printPairs(pairs, columns),
    "",
    `latchkey ${group.name} COMMAND --help tells the flags of one, with an example.`,
  ].join("\n");
}

export function commandHelp(group: CommandGroup, command: Command): string {
  const columns = helpColumns();
  const operand = command.batch === undefined ? operandOf(command) : " [FILE]";
  const flags = flagsOf(command).map((flag): [string, string] => [`  --${usageOf(flag)}`, describe(flag)]);
  const common = commonFlagsOf(command).map(({ name, short, value, details }): [string, string] => [
    `  ${short === undefined ? "" : `-${short}, `}--${name}${value === undefined ? "" : ` ${value}`}`,
    details,
  ]);
  return [
    `Usage: latchkey ${group.name} ${command.name}${operand} [flags]`,
    "",
    wrap(command.details, columns),
    "",
    ...(flags.length === 0 ? [] : ["Fields of the request:", printPairs(flags, columns), ""]),
    "Flags:",
    printPairs(common, columns),
    "",
    "Example:",
    `  ${exampleLine(group, command)}`,
    "",
    exitCodeHelp,
  ].join("\n");
}

function operandOf(command: Command): string {
  const { operand } = command;
  if (operand === undefined) return "";
  const name = kebabCase(operand).toUpperCase();
  const isNeeded = flagsOf(command).some(({ field }) => field.name === operand && field.isRequired);
  return isNeeded ? ` ${name}` : ` [${name}]`;
}

function usageOf({ name, field }: Flag): string {
  return field.type === "boolean" ? `${name} [true|false]` : `${name} ${valueForm(field)}`;
}

function valueForm({ type, unit, values, isSecret }: CommandField): string {
  if (isSecret) return "@FILE";
  if (values !== undefined) return values.join("|");
  if (type === "message" || type === "object") return "JSON|@FILE";
  if (type === "string") return "TEXT";
  return unit === undefined ? "NUMBER" : unit === "moment" ? "DATE" : "TIME";
}

function describe({ field, path, list, name }: Flag): string {
  const marks = [
    ...(field.isRequired && path.length === 1 ? ["Required."] : []),
    ...(field.isList ? ["Can be repeated."] : []),
    ...(list?.begin === name ? ["Begins an element."] : []),
  ];
  return [field.details.replaceAll("\n\n", " "), ...marks].join(" ");
}

/** Two columns, the second one wrapped. */
function printPairs(pairs: readonly (readonly [left: string, right: string])[], columns: number): string {
  const width = Math.min(34, Math.max(...pairs.map(([left]) => widthOf(left))));
  return pairs
    .map(([left, right]) => {
      const lines = wrap(right, Math.max(20, columns - width - 2)).split("\n");
      const isLong = widthOf(left) > width;
      const first = isLong ? `${left}\n${" ".repeat(width)}` : padEnd(left, width);
      return `${first}  ${lines.join(`\n${" ".repeat(width + 2)}`)}`.trimEnd();
    })
    .join("\n");
}

/** Breaks lines between words. Paragraphs stay apart. */
function wrap(text: string, columns: number): string {
  const paragraphs = text.trim().split("\n\n");
  return paragraphs
    .map((paragraph) => {
      const lines: string[] = [""];
      for (const word of paragraph.split(/\s+/)) {
        const line = lines.at(-1) as string;
        if (line === "") lines[lines.length - 1] = word;
        else if (line.length + 1 + word.length > columns) lines.push(word);
        else lines[lines.length - 1] = `${line} ${word}`;
      }
      return lines.join("\n");
    })
    .join("\n\n");
}

/** Long lines are hard to read, also on a wide screen. */
function helpColumns(): number {
  return Math.min(process.stdout.columns || 100, 120);
}
