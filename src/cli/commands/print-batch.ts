import type { Command, CommandField } from "../../../gen/latchkey/v1/commands.ts";
import { fieldsOf } from "./flags.ts";
import { hasError } from "./import-in-batches.ts";
import type { Printed } from "./print-answer.ts";
import { printTable } from "./print-table.ts";
import type { Screen } from "./screen.ts";
import type { Json } from "./set-field.ts";

const numberField: CommandField = { name: "number", type: "integer", details: "" };

/** Prints what became of each of a list: of more than one request takes, only what failed. */
export function printBatch({ batch, response }: Command, answer: Json, screen: Screen): Printed {
  const { field, max, results } = batch as NonNullable<Command["batch"]>;
  const all = (answer[results] as Json[]).map((result, i) => ({ number: i + 1, ...result }));
  const failed = all.filter(hasError);
  const shown = all.length > max ? failed : all;
  const inner = fieldsOf(response).find(({ name }) => name === results)?.message ?? "";
  const stdout = shown.length === 0 ? "" : printTable([numberField, ...fieldsOf(inner)], shown, screen).text;
  return { stdout, stderr: `${all.length - failed.length} of ${all.length} ${field} were imported.\n` };
}
