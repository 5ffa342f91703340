import { describe, expect, it } from "vitest";
import { runLatchkey } from "../support/latchkey-process.ts";
import { candidatesIn, cases, check, homeWithProfile } from "./completion-cases.ts";

describe.concurrent("completion", () => {
  it("offers commands, flags and values in bash", async () => {
    const folder = homeWithProfile();
    const { code, stdout: script } = await runLatchkey(["completion", "bash"]);
    expect(code).toBe(0);
    for (const each of cases) {
      const words = each[0].split(" ");
      const typed = `COMP_WORDS=(${words.map((word) => `'${word}'`).join(" ")}); COMP_CWORD=${words.length - 1}`;
      const ask = `${script}\n${typed}; _latchkey; printf '%s\\n' "\${COMPREPLY[@]}"`;
      check(await candidatesIn(folder, "bash", ["--norc", "-c", ask]), each);
    }
  });

  it("knows no other shells, and suggests none to their users", async () => {
    for (const args of [["tcsh"], [], ["bash", "zsh"]]) {
      const { code, stderr } = await runLatchkey(["completion", ...args]);
      expect({ code, stderr }).toEqual({
        code: 2,
        stderr: "there is completion for bash, zsh and fish\nlatchkey completion --help tells how it is used\n",
      });
    }
  });
});
