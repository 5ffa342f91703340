import { UsageError } from "./command-error.ts";
import { kebabCase } from "./flags.ts";
import { suggest } from "./nearest-name.ts";

/** What the parser has to know of a flag. */
export interface KnownFlag {
  readonly name: string;
  /** Without: the flag alone is a value, and another one follows `=` only. */
  readonly needsValue: boolean;
  readonly canRepeat: boolean;
}

export interface GivenFlag {
  readonly name: string;
  /** Undefined where the flag stands alone. */
  readonly text: string | undefined;
}

export interface Arguments {
  readonly operands: readonly string[];
  /** In the order in which they were typed. */
  readonly flags: readonly GivenFlag[];
}

/**
 * Splits arguments into flags and operands: `--name value`, `--name=value`, `--name`; after `--` all are operands. Throws
 * a `UsageError`, which never repeats a value.
 */
export function parseArguments(args: readonly string[], known: readonly KnownFlag[]): Arguments {
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
    const [, typed = "", , attached] = /^--?([^=]*)(=(.*))?$/s.exec(arg) ?? [];
    const name = arg === "-h" ? "help" : typed;
    const flag = arg.startsWith("--") || arg === "-h" ? known.find((each) => each.name === name) : undefined;
    if (flag === undefined) throw unknownFlag(arg.startsWith("--") ? "--" : "-", typed, known);
    if (!flag.canRepeat && flags.some((given) => given.name === name))
      throw new UsageError(`--${name} was given twice`);
    const next = args[i + 1];
    if (attached !== undefined || !flag.needsValue) {
      if (attached === undefined && (next === "true" || next === "false"))
        throw new UsageError(`--${name} takes its value with =, such as --${name}=${next}`);
      flags.push({ name, text: attached });
      continue;
    }
    if (next === undefined || next.startsWith("--")) throw new UsageError(`--${name} needs a value`);
    flags.push({ name, text: next });
    i++;
  }
  return { operands, flags };
}

function unknownFlag(dashes: string, typed: string, known: readonly KnownFlag[]): UsageError {
  const names = known.map(({ name }) => name);
  return new UsageError(`there is no flag ${dashes}${typed}${suggest(kebabCase(typed), names, "--")}`);
}
