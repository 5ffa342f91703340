import type { CommandField } from "../../../gen/latchkey/v1/commands.ts";
import { suggest } from "../../domain/suggest.ts";
import { UsageError } from "./command-error.ts";
import { fieldsOf, flagName, kebabCase } from "./flags.ts";
import type { Command } from "./groups.ts";
import type { Json } from "./set-field.ts";

/** A field of an answer, or a field of a field. */
export interface Column {
  /** As the flag that sets it, such as `ratelimit.limit`. */
  readonly name: string;
  readonly path: readonly string[];
  readonly field: CommandField;
}

/** One for each field. */
export function columnsOf(fields: readonly CommandField[]): Column[] {
  return fields.map((field) => ({ name: kebabCase(field.name), path: [field.name], field }));
}

/** Those of the rows of an answer: the items of a list, the results of an import, or the answer itself. */
export function rowColumnsOf({ response, items, batch }: Command): Column[] {
  const list = items ?? batch?.results;
  if (list === undefined) return columnsOf(fieldsOf(response));
  const rows = columnsOf(fieldsOf(fieldsOf(response).find(({ name }) => name === list)?.message ?? ""));
  return batch === undefined ? rows : [numberColumn, ...rows];
}

/** Of the results of an import: which of the list it is. */
export const numberField: CommandField = { name: "number", type: "integer", details: "" };
const [numberColumn] = columnsOf([numberField]) as [Column];

export function rowsOf({ items, batch }: Command, answer: Json): readonly Json[] {
  if (batch !== undefined)
    return (answer[batch.results] as Json[]).map((result, i) => ({ [numberField.name]: i + 1, ...result }));
  return items === undefined ? [answer] : ((answer[items] ?? []) as Json[]);
}

/** The columns that `--columns` names, such as `key-id,name,ratelimit.limit`. */
export function chooseColumns(command: Command, typed: string): readonly Column[] {
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
  const inner = fieldsOf(field.message).map((each) => {
    const innerPath = [...path, each.name];
    return { name: flagName(innerPath), path: innerPath, field: each };
  });
  return [column, ...inner.flatMap(withInner)];
}

export function valueAt(row: Json, { path }: Column): unknown {
  return path.reduce<unknown>((value, name) => (value as Json | undefined)?.[name], row);
}
