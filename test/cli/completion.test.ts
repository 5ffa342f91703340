import { execFile } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runLatchkey } from "../support/latchkey-process.ts";
import { shellProgram } from "../support/shell-programs.ts";
import { tempFolder } from "../support/temp-folder.ts";

/** What is typed, the cursor at its end, and what must be among the candidates. */
const cases: readonly (readonly [typed: string, candidates: readonly string[], others?: readonly string[]])[] = [
  ["latchkey ke", ["keys"], ["serve"]],
  ["latchkey ", ["serve", "keys", "root-keys", "profile", "completion", "migrate"]],
  ["latchkey keys up", ["update", "update-remaining"], ["create"]],
  ["latchkey keys create --ra", ["--ratelimit", "--ratelimit.limit", "--ratelimits.name"], ["--name"]],
  ["latchkey keys create --api-id x --refill.interval ", ["daily", "monthly"], ["--name"]],
  ["latchkey keys update key_1 --unset ow", ["owner-id"]],
  ["latchkey keys list --profile p", ["production"], ["keys"]],
  ["latchkey migrate ", ["status", "up"]],
  ["latchkey completion ", ["bash", "zsh"]],
];

let folder: string;
const undos: (() => void)[] = [];
beforeAll(() => {
  folder = tempFolder((undo) => undos.push(undo));
  mkdirSync(join(folder, ".config/latchkey"), { recursive: true });
  writeFileSync(join(folder, ".config/latchkey/production.json"), "{}");
});
afterAll(() => {
  for (const undo of undos) undo();
});

async function candidatesIn(shell: string, args: readonly string[]): Promise<string[]> {
  const options = { env: { PATH: process.env.PATH, HOME: folder }, cwd: folder };
  return (await promisify(execFile)(shell, args, options)).stdout.split(/\s+/).filter(Boolean);
}

function check(found: readonly string[], [typed, wanted, unwanted = []]: (typeof cases)[number]): void {
  expect(found, typed).toEqual(expect.arrayContaining([...wanted]));
  expect(
    found.filter((each) => unwanted.includes(each)),
    typed,
  ).toEqual([]);
}

describe.concurrent("completion", () => {
  it("offers commands, flags and values in bash", async () => {
    const { code, stdout: script } = await runLatchkey(["completion", "bash"]);
    expect(code).toBe(0);
    for (const each of cases) {
      const words = each[0].split(" ");
      const typed = `COMP_WORDS=(${words.map((word) => `'${word}'`).join(" ")}); COMP_CWORD=${words.length - 1}`;
      const ask = `${script}\n${typed}; _latchkey; printf '%s\\n' "\${COMPREPLY[@]}"`;
      check(await candidatesIn("bash", ["--norc", "-c", ask]), each);
    }
  });

  it("offers the same in zsh, when a person presses the key", async () => {
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
    const shown = (await candidatesIn(shellProgram("zsh"), ["-f", "-c", ask])).join(" ").split("----");
    for (const [i, each] of cases.entries()) {
      check(
        Array.from(shown[i]?.matchAll(/\[([^\]\s]+)\]/g) ?? [], ([, word]) => word as string),
        each,
      );
    }
  });

  it("knows no other shells, and suggests none to their users", async () => {
    for (const args of [["fish"], [], ["bash", "zsh"]]) {
      const { code, stderr } = await runLatchkey(["completion", ...args]);
      expect({ code, stderr }).toEqual({
        code: 2,
        stderr: "there is completion for bash and zsh\nlatchkey completion --help tells how it is used\n",
      });
    }
  });
});
