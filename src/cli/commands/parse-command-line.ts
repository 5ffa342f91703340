import type { Command } from "../../../gen/latchkey/v1/commands.ts";
import { type Arguments, parseArguments } from "../parse-arguments.ts";
import { UsageError } from "./command-error.ts";
import { commonFlagsOf, flagsOf } from "./flags.ts";
import { readOutput } from "./output.ts";
import { parseDuration } from "./parse-value.ts";

/** What the arguments of a command say. */
export type CommandLine = ReturnType<typeof parseCommandLine>;

/** Reads all of them before anything is done. Throws a `UsageError`. */
export function parseCommandLine(command: Command, args: readonly string[]) {
  refuseRootKey(args);
  const ofFields = flagsOf(command);
  const typed = parseArguments(args, [...ofFields, ...commonFlagsOf(command)]);
  const wantsHelp = isSwitchedOn(typed, "help");
  // The help is printed whatever else is wrong with the line.
  const given: Arguments = wantsHelp ? { operands: [], flags: [] } : typed;
  const textsOf = (name: string) => given.flags.filter((flag) => flag.name === name).map(({ text }) => text ?? "");
  const textOf = (name: string) => textsOf(name)[0];
  const isFile = command.batch !== undefined && given.operands.length > 0;
  return {
    /** What sets the fields of the request. */
    request: {
      operands: isFile ? [] : given.operands,
      flags: given.flags.filter(({ name }) => ofFields.some((flag) => flag.name === name)),
      data: isFile ? fileOf(given.operands, textOf("data")) : textOf("data"),
      unset: textsOf("unset"),
    },
    wantsHelp,
    output: readOutput(command, {
      output: textOf("output"),
      columns: textOf("columns"),
      wantsJson: isSwitchedOn(given, "json"),
    }),
    wantsAllPages: isSwitchedOn(given, "all"),
    isSure: isSwitchedOn(given, "yes"),
    url: textOf("url"),
    profile: textOf("profile"),
    idempotencyKey: textOf("idempotency-key"),
    timeoutMs: parseTimeout(textOf("timeout")),
  };
}

function isSwitchedOn({ flags }: Arguments, name: string): boolean {
  return flags.some((flag) => flag.name === name);
}

/** The file of a command that takes many: `keys.jsonl` is `--data @keys.jsonl`, and `-` is standard input. */
function fileOf([file = "", ...others]: readonly string[], data: string | undefined): string {
  if (data !== undefined || others.length > 0) throw new UsageError("it takes one file");
  return file.startsWith("@") ? file : `@${file}`;
}

/** It is not a flag, but somebody may try. */
function refuseRootKey(args: readonly string[]): void {
  if (!args.some((arg) => /^--root-?key(=|$)/i.test(arg))) return;
  throw new UsageError(
    "a root key is a secret, and arguments are shown by ps: set LATCHKEY_ROOT_KEY_FILE, or make a profile with latchkey profile set",
  );
}

function parseTimeout(text = "10s"): number {
  const timeoutMs = /^\d+$/.test(text) ? Number(text) : parseDuration(text);
  if (timeoutMs > 0 && timeoutMs < 2 ** 31) return timeoutMs;
  throw new UsageError("--timeout must be a length of time such as 500ms, 30s or 5m");
}
