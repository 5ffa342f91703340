import { programCommands } from "../program-commands.ts";
import { type ExitCode, exitCodes, UsageError } from "./command-error.ts";
import { commonFlagsOf, flagsOf } from "./flags.ts";
import { type Command, groups } from "./groups.ts";

const completionHelp = `Usage: latchkey completion bash|zsh

Prints a script that completes commands, flags and their values.

Example:
  eval "$(latchkey completion bash)"`;

/** Runs `latchkey completion …`. */
export async function runCompletion(args: readonly string[]): Promise<ExitCode> {
  const [shell = "", ...others] = args;
  if (shell === "--help" || shell === "-h") {
    process.stdout.write(`${completionHelp}\n`);
    return exitCodes.done;
  }
  const script = scripts[shell];
  if (script === undefined || others.length > 0) {
    throw new UsageError("there is completion for bash and zsh\nlatchkey completion --help tells how it is used");
  }
  process.stdout.write(script());
  return exitCodes.done;
}

const scripts: Readonly<Record<string, () => string>> = { bash: bashScript, zsh: zshScript };

/** What can follow the words that are typed: the words joined by spaces, and the candidates. */
function completions(): Map<string, readonly string[]> {
  const own = Object.entries(programCommands);
  const table = new Map<string, readonly string[]>();
  const names = [...own.map(([name]) => name), ...groups.map(({ name }) => name), "profile", "completion", "help"];
  table.set("", [...names, "--help", "--version"]);
  for (const [name, { operands = [], flags = {} }] of own) {
    table.set(name, [...operands, ...Object.keys(flags).map((flag) => `--${flag}`)]);
  }
  table.set("profile", ["set", "list", "remove"]);
  table.set("profile set", ["--url", "--root-key"]);
  table.set("completion", Object.keys(scripts));
  for (const group of groups) {
    table.set(
      group.name,
      group.commands.map(({ name }) => name),
    );
    for (const command of group.commands) table.set(`${group.name} ${command.name}`, flagNames(command));
  }
  return table;
}

function flagNames(command: Command): string[] {
  return [...flagsOf(command), ...commonFlagsOf(command)].map(({ name }) => `--${name}`);
}

/** Values of flags that have few. A flag has the same ones in every command, or the table would have to tell them apart. */
function valuesOfFlags(): Map<string, string> {
  const values = new Map<string, string>();
  for (const command of groups.flatMap(({ commands }) => commands)) {
    for (const { name, field } of flagsOf(command)) if (field.values) values.set(`--${name}`, field.values.join(" "));
    const nullable = flagsOf(command).filter(({ field, path }) => field.canBeNull && path.length === 1);
    const known = values.get("--unset")?.split(" ") ?? [];
    values.set("--unset", [...new Set([...known, ...nullable.map(({ name }) => name)])].join(" "));
  }
  return values;
}

const profileNames = `$(cd "\${XDG_CONFIG_HOME:-$HOME/.config}/latchkey" 2>/dev/null && printf '%s\\n' *.json | sed -n 's/^\\([A-Za-z0-9_][A-Za-z0-9_.-]*\\)\\.json$/\\1/p')`;

function casesOf(words: string): string {
  const values = [...valuesOfFlags()].map(([flag, list]) => `    ${flag}) ${words}="${list}" ;;`);
  return [`    --profile) ${words}="${profileNames}" ;;`, ...values].join("\n");
}

function wordCases(words: string): string {
  return [...completions()].map(([typed, list]) => `    "${typed}") ${words}="${list.join(" ")}" ;;`).join("\n");
}

function bashScript(): string {
  return `# Completion of latchkey for bash. Made by \`latchkey completion bash\`.
_latchkey() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}" typed="" words=""
  local i
  for ((i = 1; i < COMP_CWORD && i < 3; i++)); do typed+="\${typed:+ }\${COMP_WORDS[i]}"; done
  case "$previous" in
${casesOf("words")}
  esac
  if [ -z "$words" ]; then case "$typed" in
${wordCases("words")}
  esac; fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _latchkey latchkey
`;
}

function zshScript(): string {
  return `#compdef latchkey
# Completion of latchkey for zsh. Made by \`latchkey completion zsh\`.
_latchkey() {
  local candidates="" typed="\${(j: :)words[2,(CURRENT-1 < 3 ? CURRENT-1 : 3)]}"
  case "\${words[CURRENT-1]}" in
${casesOf("candidates")}
  esac
  if [[ -z "$candidates" ]]; then case "$typed" in
${wordCases("candidates")}
  esac; fi
  if [[ -n "$candidates" ]]; then compadd -- \${=candidates}; else _files; fi
}
compdef _latchkey latchkey
`;
}
