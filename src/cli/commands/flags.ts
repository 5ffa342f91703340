import { type CommandField, messages } from "../../../gen/latchkey/v1/commands.ts";
import type { Command } from "./groups.ts";

/** A flag that sets a field of the request. */
export interface Flag {
  /** Such as `ratelimit.limit`, without the dashes in front. */
  readonly name: string;
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
export interface CommonFlag {
  readonly name: string;
  readonly short?: string;
  /** What its value is, in the help. Absent: it takes none. */
  readonly value?: string;
  readonly isList?: true;
  readonly details: string;
}

/** The flags of the fields of a command's request: all of them are derived from the contract. */
export function flagsOf(command: Command): Flag[] {
  return requestFieldsOf(command).flatMap((field) => flagsOfField(field, [], undefined));
}

/** The fields of a command's request that can be set. */
export function requestFieldsOf({ request, fields }: Command): readonly CommandField[] {
  return fieldsOf(request).filter(({ name }) => fields?.includes(name) ?? true);
}

function flagsOfField(field: CommandField, above: readonly string[], list: ListOfMessages | undefined): Flag[] {
  const path = [...above, field.name];
  const flag = { name: flagName(path), path, field, list };
  // A list within an element of a list has no flags for its fields: it takes JSON.
  if (field.message === undefined || (field.isList && list)) return [flag];
  const inner = fieldsOf(field.message);
  const begin = flagName([...path, inner[0]?.name ?? ""]);
  return [flag, ...inner.flatMap((each) => flagsOfField(each, path, field.isList ? { path, begin } : list))];
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
export function commonFlagsOf(command: Command): CommonFlag[] {
  const canUnset = requestFieldsOf(command).some(({ canBeNull }) => canBeNull);
  return [
    ...(command.sets === undefined
      ? [
          {
            name: "data",
            value: "@FILE",
            details: "The request as JSON, from a file, or from standard input with @-. Flags set single fields of it.",
          },
        ]
      : []),
    ...(canUnset
      ? [
          {
            name: "unset",
            value: "FIELD",
            isList: true as const,
            details: "Removes a field: sends null. Can be repeated.",
          },
        ]
      : []),
    ...(command.items === undefined ? [] : [{ name: "all", details: "All pages, not only one." }]),
    ...(command.isDeletion ? [{ name: "yes", details: "Does not ask. Needed where nobody can be asked." }] : []),
    ...(command.isIdempotent
      ? [{ name: "idempotency-key", value: "TEXT", details: "The same command with the same text is executed once." }]
      : []),
    ...connectionFlags,
    {
      name: "timeout",
      value: "TIME",
      details: "How long the call may take, such as 30s. Default: 10s.",
    },
    { name: "output", short: "o", value: "FORMAT", details: `How the answer is printed: ${formatHelp.join("; ")}.` },
    { name: "columns", value: "NAMES", details: "What to print in a table or as csv, such as key-id,name." },
    { name: "json", details: "The same as --output json." },
    { name: "help", short: "h", details: "Prints this help." },
  ];
}

const connectionFlags: readonly CommonFlag[] = [
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
];

export function fieldsOf(message: string): readonly CommandField[] {
  return messages[message] ?? [];
}

/** `["refill", "carryOver"]` is `refill.carry-over`. */
export function flagName(path: readonly string[]): string {
  return path.map(kebabCase).join(".");
}

export function kebabCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}
