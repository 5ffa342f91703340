import { programCommands } from "../program-commands.ts";
import { type ExitCode, exitCodes, UsageError } from "./command-error.ts";
import { commonFlagsOf, flagsOf, formats } from "./flags.ts";
import { type CliCommand, groups } from "./groups.ts";
import { profileActions } from "./profile-command.ts";

const completionHelp = `Usage: latchkey completion bash|zsh|fish

Prints a script that completes commands, flags and their values.

Examples:
  eval "$(latchkey completion bash)"
  latchkey completion fish | source`;

/** Runs `latchkey completion …`. */
export async function runCompletion(args: readonly string[]): Promise<ExitCode> {
  const [shell = "", ...others] = args;
  if (shell === "--help" || shell === "-h") {
    process.stdout.write(`${completionHelp}\n`);
    return exitCodes.done;
  }
  const script = scripts[shell];
  if (script === undefined || others.length > 0) {
    throw new UsageError("there is completion for bash, zsh and fish\nlatchkey completion --help tells how it is used");
  }
  process.stdout.write(script());
  return exitCodes.done;
}

const scripts: Readonly<Record<string, () => string>> = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
};

/** What can follow the words that are typed: the words joined by spaces, and the candidates. */
function completions(): Map<string, readonly string[]> {
  const own = Object.entries(programCommands);
  const table = new Map<string, readonly string[]>();
  const names = [...own.map(([name]) => name), ...groups.map(({ name }) => name), "profile", "completion", "help"];
  table.set("", [...names, "--help", "--version"]);
  for (const [name, { operands = [], flags = [] }] of own) {
    table.set(name, [...operands, ...flags.map((flag) => `--${flag.name}`)]);
  }
  table.set("profile", profileActions);
  table.set("profile set", ["--url", "--root-key"]);
  table.set("completion", Object.keys(scripts));
  for (const group of groups) {
    const commandNames = group.commands.map(({ name }) => name);
    table.set(group.name, commandNames);
    for (const command of group.commands) table.set(`${group.name} ${command.name}`, flagNames(command));
  }
  return table;
}

function flagNames(command: CliCommand): string[] {
  return [...flagsOf(command), ...commonFlagsOf(command)].map(({ name }) => `--${name}`);
}

/** Values of flags that have few. A flag has the same ones in every command, or the table would need the command too. */
function valuesOfFlags(): Map<string, string> {
  const outputs = Object.keys(formats).join(" ");
  const values = new Map([
    ["-o", outputs],
    ["--output", outputs],
  ]);
  for (const command of groups.flatMap(({ commands }) => commands)) {
    for (const { name, field } of flagsOf(command)) if (field.values) values.set(`--${name}`, field.values.join(" "));
    const nullable = flagsOf(command).filter(({ field, path }) => field.canBeNull && path.length === 1);
    const known = values.get("--unset")?.split(" ") ?? [];
    values.set("--unset", [...new Set([...known, ...nullable.map(({ name }) => name)])].join(" "));
  }
  return values;
}

/** Where the name of a profile follows. */
const beforeProfile = ["profile use", "profile remove"];

const profileNames = `$(cd "\${XDG_CONFIG_HOME:-$HOME/.config}/latchkey" 2>/dev/null && printf '%s\\n' *.json | sed -n 's/^\\([A-Za-z0-9_][A-Za-z0-9_.-]*\\)\\.json$/\\1/p')`;

function casesOf(words: string): string {
  const values = [...valuesOfFlags()].map(([flag, list]) => `    ${flag}) ${words}="${list}" ;;`);
  return [`    --profile) ${words}="${profileNames}" ;;`, ...values].join("\n");
}

function wordCases(words: string): string {
  const own = [...completions()].map(([typed, list]) => `    "${typed}") ${words}="${list.join(" ")}" ;;`);
  return [...own, `    "${beforeProfile.join('"|"')}") ${words}="${profileNames}" ;;`].join("\n");
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

function fishScript(): string {
  const print = (list: string) => `      printf '%s\\n' ${list}`;
  const values = [...valuesOfFlags()].map(([flag, list]) => `    case ${flag}\n${print(list)}\n      return`);
  const words = [...completions()].map(([typed, list]) => `    case '${typed}'\n${print(list.join(" "))}`);
  return `# Completion of latchkey for fish. Made by \`latchkey completion fish\`.
function __latchkey_profiles
  set -l folder $HOME/.config
  test -n "$XDG_CONFIG_HOME"; and set folder $XDG_CONFIG_HOME
  for file in $folder/latchkey/*.json
    string replace -rf '^.*/([A-Za-z0-9_][A-Za-z0-9_.-]*)[.]json$' '$1' -- $file
  end
end
function __latchkey
  set -l words (commandline -opc)
  set -l current (commandline -ct)
  set -l typed (string join ' ' -- $words[2..3])
  switch "$words[-1]"
    case --profile
      __latchkey_profiles
      return
${values.join("\n")}
  end
  switch "$typed"
${words.join("\n")}
    case '${beforeProfile.join("' '")}'
      __latchkey_profiles
  end
  # What follows may be a file.
  if test (count $words) -ge 3; and string match -qr '^[^-]' -- "$current"
    __fish_complete_path $current
  end
end
complete -c latchkey -f -a '(__latchkey)'
`;
}
