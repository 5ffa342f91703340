import { type KnownFlag, kebabCase } from "../parse-arguments.ts";
import { exampleLine } from "./example-line.ts";
import { commonFlagsOf, type Flag, flagsOf, withFlagNames } from "./flags.ts";
import { type CliCommand, type CommandGroup, groups } from "./groups.ts";
import { padEnd, widthOf } from "./screen.ts";

/** What the process exits with, as the help says it. */
const exitCodeHelp = `Exit codes: 0 done; 1 refused, or failed, also a key that is not valid; 2 wrong use, nothing was sent;
3 the service cannot be reached or cannot decide: try again later.`;

/** The commands that call a service, for the help of the whole program. */
export function clientUsage(): string {
  const columns = helpColumns();
  const lines: Pair[] = [
    ...groups.map(({ name, summary }): Pair => [`  latchkey ${name} …`, summary]),
    ["  latchkey profile …", "Keeps the address and the root key of a service."],
    ["  latchkey completion SHELL", "Prints a script that completes commands in bash, zsh or fish."],
  ];
  return [
    "Commands that call a service, at --url, LATCHKEY_URL or a profile; each has --help:",
    printPairs(lines, columns),
    "",
    exitCodeHelp,
  ].join("\n");
}

export function groupHelp(group: CommandGroup): string {
  const columns = helpColumns();
  const pairs = group.commands.map(({ name, summary }): Pair => [`  latchkey ${group.name} ${name}`, summary]);
  return [
    wrap(group.details, columns),
    "",
    printPairs(pairs, columns),
    "",
    `latchkey ${group.name} COMMAND --help tells the flags of one, with an example.`,
  ].join("\n");
}

export function commandHelp(group: CommandGroup, command: CliCommand): string {
  const columns = helpColumns();
  const operand = command.batch === undefined ? operandOf(command) : " [FILE]";
  const flags = flagsOf(command).map((flag): Pair => [usageOf(flag), withFlagNames(describe(flag), command)]);
  const common = commonFlagsOf(command).map((flag): Pair => [usageOf(flag), flag.details]);
  return [
    `Usage: latchkey ${group.name} ${command.name}${operand} [flags]`,
    "",
    wrap(withFlagNames(command.details, command), columns),
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

function operandOf(command: CliCommand): string {
  const { operand } = command;
  if (operand === undefined) return "";
  const name = kebabCase(operand).toUpperCase();
  const isNeeded = flagsOf(command).some(({ field }) => field.name === operand && field.isRequired);
  return isNeeded ? ` ${name}` : ` [${name}]`;
}

function usageOf({ name, short, value }: KnownFlag): string {
  return `  ${short === undefined ? "" : `-${short}, `}--${name}${value === undefined ? "" : ` ${value}`}`;
}

function describe({ field, path, list, name }: Flag): string {
  const marks = [
    ...(field.isRequired && path.length === 1 ? ["Required."] : []),
    ...(field.isList ? ["Can be repeated."] : []),
    ...(list?.begin === name ? ["Begins an element."] : []),
  ];
  return [field.details.replaceAll("\n\n", " "), ...marks].join(" ");
}

type Pair = readonly [left: string, right: string];

/** Two columns, the second one wrapped. */
function printPairs(pairs: readonly Pair[], columns: number): string {
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
