import type { CommandField } from "../../../gen/latchkey/v1/commands.ts";
import { suggest } from "../../domain/suggest.ts";
import { kebabCase } from "../parse-arguments.ts";
import { UsageError } from "./command-error.ts";
import { fieldsOfMessage, flagName } from "./flags.ts";
import type { CliCommand } from "./groups.ts";
import type { JsonMessage } from "./set-field.ts";

/** A field of an answer, or a field of a field. */
export interface Column {
  /** As the flag that sets it, such as `ratelimit.limit`. */
  readonly name: string;
  readonly path: readonly string[];
  readonly field: CommandField;
}

/** One for each field. */
export function columnsToPrint(fields: readonly CommandField[]): Column[] {
  return fields.map((field) => ({ name: kebabCase(field.name), path: [field.name], field }));
}

/** Those of the rows of an answer: the items of a list, the results of an import, points of a series, or the answer itself. */
export function rowColumnsOf({ response, items, batch, series }: CliCommand): Column[] {
  if (series !== undefined) {
    const messageOf = (fields: readonly CommandField[], list: string) =>
      fieldsOfMessage(fields.find(({ name }) => name === list)?.message ?? "");
    const outer = messageOf(fieldsOfMessage(response), series.list);
    return columnsToPrint([...outer.filter(isId), ...messageOf(outer, series.points)]);
  }
  const list = items ?? batch?.results;
  if (list === undefined) return columnsToPrint(fieldsOfMessage(response));
  const message = fieldsOfMessage(response).find(({ name }) => name === list)?.message;
  const rows = columnsToPrint(fieldsOfMessage(message ?? ""));
  return batch === undefined ? rows : [numberColumn, ...rows];
}

/** Which element of an import a result is for. */
export const numberField: CommandField = { name: "number", type: "integer", details: "" };
const [numberColumn] = columnsToPrint([numberField]) as [Column];

function isId({ name }: CommandField): boolean {
  return name.endsWith("Id");
}

/** A point of a series has the ids of what it belongs to. */
export function rowsOf({ items, batch, series }: CliCommand, answer: JsonMessage): readonly JsonMessage[] {
  if (series !== undefined)
    return ((answer[series.list] ?? []) as JsonMessage[]).flatMap((each) => {
      const ids = Object.fromEntries(Object.entries(each).filter(([name]) => isId({ name } as CommandField)));
      return ((each[series.points] ?? []) as JsonMessage[]).map((point) => ({ ...ids, ...point }));
    });
  if (batch !== undefined)
    return (answer[batch.results] as JsonMessage[]).map((result, i) => ({ [numberField.name]: i + 1, ...result }));
  return items === undefined ? [answer] : ((answer[items] ?? []) as JsonMessage[]);
}

/** The columns that `--columns` names, such as `key-id,name,ratelimit.limit`. */
export function chooseColumns(command: CliCommand, typed: string): readonly Column[] {
  const known = rowColumnsOf(command).flatMap(withInner);
  const names = known.map(({ name }) => name);
  return typed.split(",").map((each) => {
    // As in the head of a table, or as in JSON.
    const name = each === each.toUpperCase() ? each.toLowerCase() : kebabCase(each);
    const column = known.find((other) => other.name === name.trim());
    if (column === undefined) throw new UsageError(`--columns takes ${names.join(", ")}${suggest(name, names)}`);
    return column;
  });
}

function withInner(column: Column): Column[] {
  const { field, path } = column;
  if (field.message === undefined || field.isList) return [column];
  const inner = fieldsOfMessage(field.message).map((each) => {
    const innerPath = [...path, each.name];
    return { name: flagName(innerPath), path: innerPath, field: each };
  });
  return [column, ...inner.flatMap(withInner)];
}

export function valueAt(row: JsonMessage, { path }: Column): unknown {
  return path.reduce<unknown>((value, name) => (value as JsonMessage | undefined)?.[name], row);
}
