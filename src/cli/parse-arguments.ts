import { suggest } from "../domain/suggest.ts";
import { UsageError } from "./commands/command-error.ts";

/** What the parser has to know of a flag. */
export interface KnownFlag {
  readonly name: string;
  /** Its letter behind a single dash. */
  readonly short?: string | undefined;
  /** What follows it, as the help names it. Absent: nothing. */
  readonly value?: string;
  /** Only `true` or `false` may follow, or nothing. */
  readonly isBoolean?: boolean;
  readonly canRepeat?: boolean;
}

export interface GivenFlag {
  readonly name: string;
  /** Undefined where the flag stands alone. */
  readonly text: string | undefined;
}

/** The values of flags by name: `true` where a flag stands alone. */
export type FlagValues = Readonly<Record<string, string | boolean | undefined>>;

export interface Arguments {
  readonly operands: readonly string[];
  /** In the order in which they were typed. */
  readonly flags: readonly GivenFlag[];
}

/**
 * Splits arguments into flags and operands: `--name value`, `--name=value`, `--name`, and the same with a letter, such as
 * `-o json` and `-ojson`; after `--` all are operands. Throws a `UsageError`, which never repeats a value; `hint` ends it for
 * a flag that is unlike all others.
 */
export function parseArguments(args: readonly string[], known: readonly KnownFlag[], hint = ""): Arguments {
  const operands: string[] = [];
  const flags: GivenFlag[] = [];
  for (let i = 0; i < args.length; i++) {
    const arg = args[i] as string;
    if (arg === "--") {
      operands.push(...args.slice(i + 1));
      break;
    }
    if (!arg.startsWith("-") || arg === "-") {
      operands.push(arg);
      continue;
    }
    const { flag, attached } = findFlag(arg, known, hint);
    const { name, value, isBoolean = false } = flag;
    if (!flag.canRepeat && flags.some((given) => given.name === name))
      throw new UsageError(`--${name} was given twice`);
    const next = args[i + 1];
    const isWord = next === "true" || next === "false";
    if (attached !== undefined || value === undefined || (isBoolean && !isWord)) {
      if (value === undefined && (attached !== undefined || isWord)) throw new UsageError(`--${name} takes no value`);
      flags.push({ name, text: attached });
      continue;
    }
    if (next === undefined || next.startsWith("--")) throw new UsageError(`--${name} needs a value`);
    flags.push({ name, text: next });
    i++;
  }
  return { operands, flags };
}

/** The flag of an argument, and the value that is written together with it. */
function findFlag(
  arg: string,
  known: readonly KnownFlag[],
  hint: string,
): { flag: KnownFlag; attached: string | undefined } {
  const [, dashes = "", typed = "", , value] = /^(--?)([^=]*)(=(.*))?$/s.exec(arg) ?? [];
  const isShort = dashes === "-";
  const flag = known.find(({ name, short }) => (isShort ? short === arg[1] : name === typed));
  if (flag === undefined) throw unknownFlag(dashes, typed, known, hint);
  return { flag, attached: isShort ? arg.slice(2).replace(/^=/, "") || undefined : value };
}

/** What follows a letter may be a value: it is repeated only if it is nearly the name of a flag. */
function unknownFlag(dashes: string, typed: string, known: readonly KnownFlag[], hint: string): UsageError {
  const names = known.map(({ name }) => name);
  const suggestion = suggest(kebabCase(typed), names, "--");
  const repeated = dashes === "-" && suggestion === "" ? typed.slice(0, 1) : typed;
  return new UsageError(`there is no flag ${dashes}${repeated}${suggestion || hint}`);
}

/** The name of a field, as its flag is written. */
export function kebabCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}
