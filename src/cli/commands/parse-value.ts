import type { CommandField } from "../../../gen/latchkey/v1/commands.ts";
import { UsageError } from "./command-error.ts";

/** Turns the text of a flag into the JSON of its field. Bounds are checked by the service, which knows all of them. */
export function parseValue(flag: string, field: CommandField, text: string | undefined): unknown {
  switch (field.type) {
    case "boolean":
      if (text === undefined || text === "true") return true;
      if (text === "false") return false;
      throw new UsageError(`--${flag} must be true or false`);
    case "integer":
      return parseInteger(flag, field.unit, text ?? "");
    case "string":
      if (field.values && !field.values.includes(text ?? ""))
        throw new UsageError(`--${flag} must be ${field.values.join(" or ")}`);
      return text ?? "";
    default:
      return parseObject(flag, text ?? "", field.isList === true && field.type === "message");
  }
}

/** JSON objects, or lists of them where the field is a list. */
function parseObject(flag: string, text: string, canBeList: boolean): unknown {
  const value = parseJsonText(`--${flag}`, text);
  if (typeof value === "object" && value !== null && (canBeList || !Array.isArray(value))) return value;
  throw new UsageError(`--${flag} must be a JSON object${canBeList ? ", or a list of them" : ""}`);
}

/** The error of `JSON.parse` is not printed: it quotes the text. */
export function parseJsonText(what: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new UsageError(`${what} must be JSON, or @ and the name of a file with JSON`);
  }
}

function parseInteger(flag: string, unit: CommandField["unit"], text: string): number {
  const value = /^\d+$/.test(text) ? Number(text) : unit === undefined ? Number.NaN : parseTime(unit, text);
  if (Number.isSafeInteger(value)) return value;
  const forms = {
    moment: "a date such as 2027-01-31 or 2027-01-31T12:00:00Z, or Unix milliseconds",
    milliseconds: "a length of time such as 500ms, 30s, 5m, 2h or 7d, or milliseconds",
  };
  throw new UsageError(`--${flag} must be ${unit === undefined ? "a whole number" : forms[unit]}`);
}

function parseTime(unit: "moment" | "milliseconds", text: string): number {
  if (unit === "milliseconds") return parseDuration(text);
  // Without an offset it is UTC, as everything here is.
  const isDate = /^\d{4}-\d\d-\d\d$/.test(text);
  const isMoment = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:\d\d)$/.test(text);
  return isDate || isMoment ? Date.parse(text) : Number.NaN;
}

/** From the largest. */
const units = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1000],
  ["ms", 1],
] as const;

/** Milliseconds of a text such as `30s`; NaN for any other. */
export function parseDuration(text: string): number {
  const [, amount, unit] = /^(\d+)(ms|[smhd])$/.exec(text) ?? [];
  const [, ms] = units.find(([name]) => name === unit) ?? [];
  return ms === undefined ? Number.NaN : Number(amount) * ms;
}

/** The shortest text that `parseDuration` reads as this. */
export function printDuration(durationMs: number): string {
  const [unit, ms] = units.find(([, ms]) => durationMs >= ms && durationMs % ms === 0) ?? ["ms", 1];
  return `${durationMs / ms}${unit}`;
}
