import { readFileSync } from "node:fs";
import { text as readAll } from "node:stream/consumers";
import { CommandError, exitCodes, UsageError } from "./command-error.ts";

/** Where values come from that are not arguments. */
export interface Input {
  /** What `@file` or `@-` names. */
  read(flag: string, source: string): Promise<string>;
  /** A secret that no flag names: asked for on a terminal, else what standard input holds. Empty if there is none. */
  readSecret(question: string): Promise<string>;
  /** Whether the person at the terminal says yes. Undefined if there is nobody to ask. */
  confirm(question: string): Promise<boolean | undefined>;
}

export const processInput: Input = {
  async read(flag, source) {
    if (source === "@-") return readStdin();
    try {
      return readFileSync(source.slice(1), "utf8");
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      throw new UsageError(`the file of --${flag} cannot be read: ${code}`);
    }
  },

  async readSecret(question) {
    if (!process.stdin.isTTY) return (await readStdin()).trim();
    const line = await readLine(question, false);
    return pasteMarks.reduce((text, mark) => text.replaceAll(mark, ""), line).trim();
  },

  async confirm(question) {
    if (!process.stdin.isTTY || !process.stderr.isTTY || stdinIsRead) return undefined;
    return /^y(es)?$/i.test((await readLine(`${question} [y/N] `, true)).trim());
  },
};

let stdinIsRead = false;

function readStdin(): Promise<string> {
  if (stdinIsRead) throw new UsageError("standard input can be read once only: name a file for the others");
  stdinIsRead = true;
  return readAll(process.stdin);
}

const interrupt = "\u0003";
const endOfInput = "\u0004";
/** Some terminals put them around what is pasted. */
const pasteMarks = ["\u001b[200~", "\u001b[201~"];

/**
 * Reads a line from the terminal. Characters are taken one by one, so that a secret is never shown: the terminal's own
 * echo is off in this mode. It is off before the question appears, for people who paste the answer immediately.
 */
function readLine(question: string, isVisible: boolean): Promise<string> {
  const { stdin, stderr } = process;
  stdin.setRawMode(true);
  stderr.write(question);
  stdin.setEncoding("utf8");
  return new Promise((resolve, reject) => {
    let line = "";
    const end = (finish: () => void) => {
      stdin.off("data", onData);
      stdin.setRawMode(false);
      stdin.pause();
      stderr.write("\n");
      finish();
    };
    const onData = (chunk: Buffer | string) => {
      for (const character of String(chunk)) {
        if (character === interrupt) return end(() => reject(new CommandError("interrupted", exitCodes.interrupted)));
        if (character === "\r" || character === "\n" || character === endOfInput) return end(() => resolve(line));
        const isErasing = character === "\u007f" || character === "\b";
        if (isVisible) stderr.write(isErasing ? (line === "" ? "" : "\b \b") : character);
        line = isErasing ? line.slice(0, -1) : line + character;
      }
    };
    stdin.on("data", onData);
    stdin.resume();
  });
}
