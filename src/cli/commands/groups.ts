import {
  type CommandGroup as ContractGroup,
  type Command as Method,
  groups as methods,
} from "../../../gen/latchkey/v1/commands.ts";

/** A command that calls a method: one of the contract, or an alias. */
export interface CliCommand extends Method {
  /** The fields that the name of an alias sets. */
  readonly sets?: Readonly<Record<string, unknown>>;
  /** The fields that have flags in an alias. Absent: all. */
  readonly fields?: readonly string[];
  /** Absent: the answer has none. */
  readonly series?: Series;
}

/** Numbers over time, in an answer: a list whose elements have a list each. People see them as rows, and as a bar chart. */
export interface Series {
  readonly list: string;
  readonly points: string;
  /** The field of a point that has a bar. */
  readonly bar: string;
}

export interface CommandGroup extends ContractGroup {
  readonly commands: readonly CliCommand[];
}

interface Alias extends Pick<CliCommand, "name" | "summary" | "sets" | "fields"> {
  /** The command that it is another name for. */
  readonly of: string;
}

/** By group: names that people try, because other programs have them. */
const aliases: Readonly<Record<string, readonly Alias[]>> = {
  keys: [
    {
      name: "enable",
      of: "update",
      sets: { enabled: true },
      fields: ["keyId", "ifVersion"],
      summary: "Lets a disabled key be used again.",
    },
    {
      name: "disable",
      of: "update",
      sets: { enabled: false },
      fields: ["keyId", "ifVersion"],
      summary: "Refuses a key until it is enabled again.",
    },
    { name: "revoke", of: "delete", summary: "Deletes a key." },
  ],
};

/** By method. */
const series: Readonly<Record<string, Series>> = {
  getSpending: { list: "results", points: "buckets", bar: "spent" },
};

/** By method: what the command does beyond it. */
const additions: Readonly<Record<string, string>> = {
  listKeys:
    "Without --api-id and --owner-id, the keys of all APIs are listed, one API after the other. --search finds a key by " +
    "its first characters.",
};

export const groups: readonly CommandGroup[] = methods.map((group) => ({
  ...group,
  commands: [
    ...group.commands.map((command) => withAddition(command)),
    ...(aliases[group.name] ?? []).map((alias) => commandOf(group, alias)),
  ],
}));

function withAddition(command: Method): CliCommand {
  const { method, details } = command;
  const addition = additions[method];
  const given = series[method] === undefined ? command : { ...command, series: series[method] };
  return addition === undefined ? given : { ...given, details: `${details}\n\n${addition}` };
}

function commandOf(group: ContractGroup, { of, ...alias }: Alias): CliCommand {
  const command = group.commands.find(({ name }) => name === of) as Method;
  const flags = Object.entries(alias.sets ?? {}).map(([name, value]) => ` --${name}=${value}`);
  const same = `latchkey ${group.name} ${of}${flags.join("")}`;
  const { operand = "" } = command;
  const example = { [operand]: command.example[operand] };
  return { ...command, ...alias, details: `${alias.summary} The same as ${same}.`, example };
}
