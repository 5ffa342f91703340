import type { CommandField } from "../../../gen/latchkey/v1/commands.ts";
import { kebabCase } from "../parse-arguments.ts";
import { fieldsOfMessage } from "./flags.ts";
import { printDuration } from "./parse-value.ts";
import { printable } from "./screen.ts";
import type { JsonMessage } from "./set-field.ts";

/** Prints the value of a field of an answer in one line, for people. Absent values are an empty text. */
export function printValue(field: CommandField, value: unknown): string {
  if (value === undefined || value === null) return "";
  if (field.isList && Array.isArray(value)) {
    const separator = field.type === "message" ? "; " : ", ";
    return value.map((each) => printSingle(field, each)).join(separator);
  }
  return printSingle(field, value);
}

function printSingle({ type, unit, message }: CommandField, value: unknown): string {
  if (type === "integer" && unit === "moment") return printMoment(value as number);
  if (type === "integer" && unit === "milliseconds") return printDuration(value as number);
  if (type === "message") {
    const filled = fieldsOfMessage(message ?? "").filter(({ name }) => (value as JsonMessage)[name] !== undefined);
    return filled
      .map((field) => `${kebabCase(field.name)}=${printValue(field, (value as JsonMessage)[field.name])}`)
      .join(" ");
  }
  if (type === "object") return Object.keys(value as JsonMessage).length === 0 ? "" : printable(JSON.stringify(value));
  return printable(String(value));
}

/** In UTC and to the second. */
function printMoment(ms: number): string {
  return new Date(ms)
    .toISOString()
    .replace("T", " ")
    .replace(/\.\d+Z$/, "Z");
}
