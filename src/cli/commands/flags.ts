import { type CommandField, messages } from "../../../gen/latchkey/v1/commands.ts";
import { type KnownFlag, kebabCase } from "../parse-arguments.ts";
import type { CliCommand } from "./groups.ts";

/** A flag that sets a field of the request. Its name is such as `ratelimit.limit`, without the dashes in front. */
export interface Flag extends KnownFlag {
  /** Names of the fields on the way to it, its own last. */
  readonly path: readonly string[];
  readonly field: CommandField;
  /** The list that it sets a field in an element of. */
  readonly list?: ListOfMessages | undefined;
}

interface ListOfMessages {
  readonly path: readonly string[];
  /** The flag of the first field of an element: each one begins a new element. */
  readonly begin: string;
}

/** A flag that is about the call or its output. */
interface CommonFlag extends KnownFlag {
  readonly details: string;
}

/** The flags of the fields of a command's request: all of them are derived from the contract. */
export function flagsOf(command: CliCommand): Flag[] {
  return requestFieldsOf(command).flatMap((field) => flagsOfField(field, [], undefined));
}

/** The fields of a command's request that can be set. */
export function requestFieldsOf({ request, fields }: CliCommand): readonly CommandField[] {
  return fieldsOfMessage(request).filter(({ name }) => fields?.includes(name) ?? true);
}

function flagsOfField(field: CommandField, above: readonly string[], list: ListOfMessages | undefined): Flag[] {
  const path = [...above, field.name];
  const isBoolean = field.type === "boolean";
  const canRepeat = Boolean(field.isList || list);
  const flag = { name: flagName(path), value: valueForm(field), isBoolean, canRepeat, path, field, list };
  // A list within an element of a list has no flags for its fields: it takes JSON.
  if (field.message === undefined || (field.isList && list)) return [flag];
  const inner = fieldsOfMessage(field.message);
  const begin = flagName([...path, inner[0]?.name ?? ""]);
  return [flag, ...inner.flatMap((each) => flagsOfField(each, path, field.isList ? { path, begin } : list))];
}

/** The flag that sets a field, if there is one. */
export function flagOf(path: string, command: CliCommand): string | undefined {
  const name = flagName(path.split("."));
  return flagsOf(command).some((flag) => flag.name === name) ? `--${name}` : undefined;
}

/** A text of the contract, which names fields as they are in JSON, with their flags. */
export function withFlagNames(text: string, command: CliCommand): string {
  return text.replace(/(?<![\w-])[a-z]+[A-Z]\w*/g, (name) => flagOf(name, command) ?? name);
}

/** What `--output` takes, each with what it prints. */
export const formats = {
  table: "for people (default)",
  wide: "the same with all columns that have a value",
  json: "the service's answer",
  csv: "for spreadsheets",
  name: "only ids",
  key: "only the secret of a creation",
} as const;

const formatHelp = Object.entries(formats).map(([name, prints]) => `${name}, ${prints}`);

/** The flags of a command that set no field. */
export function commonFlagsOf(command: CliCommand): CommonFlag[] {
  const canUnset = requestFieldsOf(command).some(({ canBeNull }) => canBeNull);
  const dataDetails =
    "The request as JSON, from a file, or from standard input with @-. Flags set single fields of it.";
  const unsetDetails = "Removes a field: sends null. Can be repeated.";
  const idempotencyDetails = "The same command with the same text is executed once.";
  const flags: readonly (CommonFlag | false | undefined)[] = [
    command.sets === undefined && { name: "data", value: "@FILE", details: dataDetails },
    canUnset && { name: "unset", value: "FIELD", canRepeat: true, details: unsetDetails },
    command.items !== undefined && { name: "all", details: "All pages, not only one." },
    command.isDeletion && { name: "yes", details: "Does not ask. Needed where nobody can be asked." },
    command.isIdempotent && { name: "idempotency-key", value: "TEXT", details: idempotencyDetails },
    ...flagsOfEveryCommand,
  ];
  return flags.filter((flag) => flag !== false && flag !== undefined);
}

const flagsOfEveryCommand: readonly CommonFlag[] = [
  {
    name: "url",
    value: "URL",
    details: "Where the service is, in place of LATCHKEY_URL. Default: http://127.0.0.1:8080.",
  },
  {
    name: "profile",
    value: "NAME",
    details: "Takes address and root key from a profile, in place of LATCHKEY_PROFILE.",
  },
  { name: "timeout", value: "TIME", details: "How long the call may take, such as 30s. Default: 10s." },
  { name: "output", short: "o", value: "FORMAT", details: `How the answer is printed: ${formatHelp.join("; ")}.` },
  { name: "columns", value: "NAMES", details: "What to print in a table or as csv, such as key-id,name." },
  { name: "json", details: "The same as --output json." },
  { name: "help", short: "h", details: "Prints this help." },
];

export function fieldsOfMessage(message: string): readonly CommandField[] {
  return messages[message] ?? [];
}

/** `["refill", "carryOver"]` is `refill.carry-over`. */
export function flagName(path: readonly string[]): string {
  return path.map(kebabCase).join(".");
}

/** What a field takes, as the help names it. */
function valueForm({ type, unit, values, isSecret }: CommandField): string {
  if (type === "boolean") return "[true|false]";
  if (isSecret) return "@FILE";
  if (values !== undefined) return values.join("|");
  if (type === "message" || type === "object") return "JSON|@FILE";
  if (type === "string") return "TEXT";
  return unit === undefined ? "NUMBER" : unit === "moment" ? "DATE" : "TIME";
}
