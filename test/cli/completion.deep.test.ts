import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { runLatchkey } from "../support/latchkey-process.ts";
import { shellProgram } from "../support/shell-programs.ts";
import { candidatesIn, cases, check, homeWithProfile } from "./completion-cases.ts";

it("completion offers commands, flags and values in fish", async () => {
  const folder = homeWithProfile();
  const { code, stdout: script } = await runLatchkey(["completion", "fish"]);
  expect(code).toBe(0);
  writeFileSync(join(folder, "completion.fish"), script);
  writeFileSync(join(folder, "keys.jsonl"), "");
  const ask = (line: string) =>
    candidatesIn(folder, shellProgram("fish"), ["--no-config", "-c", `source completion.fish; complete -C '${line}'`]);
  for (const each of cases) check(await ask(each[0]), each);
  expect(await ask("latchkey keys import ke")).toEqual(["keys.jsonl"]);
});

it("completion offers commands, flags and values in zsh, when a person presses the key", async () => {
  const folder = homeWithProfile();
  const { code, stdout: script } = await runLatchkey(["completion", "zsh"]);
  expect(code).toBe(0);
  writeFileSync(join(folder, "completion.zsh"), script);
  // A shell on a terminal of its own, in which control-T lists the candidates, each in brackets.
  const typed = cases.map(([line], i) => {
    const end = `zpty -w shell 'print END-'${i}; zpty -r shell seen '*END-${i}*END-${i}*'; print -r -- "$first$seen"`;
    // The next key only when the first candidate is there: with input waiting, zsh lists nothing.
    const list = `zpty -n -w shell '${line}'$'\\C-t'; zpty -r shell first '*]*'`;
    return `${list}; zpty -n -w shell $'\\C-u'; ${end}; print -r -- ----`;
  });
  const ask = `
    zmodload zsh/zpty
    zpty shell zsh -f -i
    zpty -w shell 'PS1=; autoload -U compinit; compinit -u -D; source ./completion.zsh'
    zpty -w shell 'list() { compstate[insert]=; _latchkey; }; zle -C list list-choices list'
    zpty -w shell 'compadd() { shift; local w; for w in "$@"; do [[ $w == $PREFIX* ]] && print -rn -- "[$w]"; done; }'
    zpty -w shell $'bindkey "^T" list; print READY'
    zpty -r shell seen '*READY*READY*'
    ${typed.join("\n")}`;
  const shown = (await candidatesIn(folder, shellProgram("zsh"), ["-f", "-c", ask])).join(" ").split("----");
  for (const [i, each] of cases.entries()) {
    check(
      Array.from(shown[i]?.matchAll(/\[([^\]\s]+)\]/g) ?? [], ([, word]) => word as string),
      each,
    );
  }
});
