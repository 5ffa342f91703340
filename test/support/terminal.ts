import { spawn } from "node:child_process";
import { once } from "node:events";
import { atTestEnd } from "./test-end.ts";

/** What somebody types when the program has shown something. */
interface Reply {
  readonly when: RegExp;
  readonly type: string;
}

interface TerminalOptions {
  readonly environment: Record<string, string>;
  readonly folder: string;
  readonly columns?: number;
  readonly replies?: readonly Reply[];
}

/** Runs commands of a shell on a terminal of their own. Resolves to the exit code and what the terminal has shown. */
export async function runOnTerminal(
  commands: string,
  { environment, folder, columns = 100, replies = [] }: TerminalOptions,
): Promise<{ code: number | null; shown: string }> {
  const env = { PATH: process.env.PATH ?? "", TERM: "xterm", ...environment };
  const script = `stty cols ${columns} rows 40; ${commands}`;
  const child = spawn("script", ["-qefc", script, "/dev/null"], { env: { ...env, SHELL: "/bin/bash" }, cwd: folder });
  atTestEnd(() => void child.kill("SIGKILL"));
  let shown = "";
  const open = [...replies];
  child.stdout.on("data", (chunk) => {
    shown += chunk;
    const [next] = open;
    if (next === undefined || !next.when.test(shown)) return;
    open.shift();
    child.stdin.write(next.type);
  });
  const [code] = (await once(child, "close")) as [number | null];
  return { code, shown: shown.replaceAll("\r\n", "\n") };
}
