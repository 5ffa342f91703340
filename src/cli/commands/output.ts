import { suggest } from "../../domain/suggest.ts";
import { chooseColumns, rowColumnsOf } from "./columns.ts";
import { UsageError } from "./command-error.ts";
import { fieldsOfMessage, formats } from "./flags.ts";
import type { CliCommand } from "./groups.ts";

type Format = keyof typeof formats;

/** How the answer is printed, and what `--columns` names. */
export type Output = ReturnType<typeof readOutput>;

interface OutputFlags {
  readonly output: string | undefined;
  readonly columns: string | undefined;
  readonly wantsJson: boolean;
}

/** Throws a `UsageError` for what the command cannot print, while nothing is sent yet. */
export function readOutput(command: CliCommand, { output, columns, wantsJson }: OutputFlags) {
  const format = readFormat(output ?? (wantsJson ? "json" : "table"));
  if (wantsJson && format !== "json") throw new UsageError(`--json and --output ${format} contradict each other`);
  if (columns !== undefined && !["table", "wide", "csv"].includes(format))
    throw new UsageError(`--columns is for tables and csv, not for ${format}`);
  if ((columns !== undefined || format === "csv") && rowColumnsOf(command).length === 0)
    throw new UsageError("the answer of this command has no columns");
  if (format === "key" && secretOf(command) === undefined)
    throw new UsageError("--output key is for commands that make a secret, such as latchkey keys create");
  if (format === "name" && idOf(command) === undefined && command.operand === undefined)
    throw new UsageError("--output name is for answers with an id");
  return { format, columns: columns === undefined ? undefined : chooseColumns(command, columns) };
}

function readFormat(typed: string): Format {
  const names = Object.keys(formats);
  if (Object.hasOwn(formats, typed)) return typed as Format;
  throw new UsageError(`--output must be ${names.join(", ").replace(/, (\w+)$/, " or $1")}${suggest(typed, names)}`);
}

/** The field of the answer with a new secret. */
export function secretOf({ response }: CliCommand): string | undefined {
  return fieldsOfMessage(response).find(({ isSecret }) => isSecret)?.name;
}

/** The field of a row that names it. */
export function idOf(command: CliCommand): string | undefined {
  return rowColumnsOf(command).find(({ field }) => /^id$|Id$/.test(field.name))?.field.name;
}
