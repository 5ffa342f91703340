import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { artefactFolder, builtProgram } from "./artefact.ts";
import { atTestEnd } from "./test-end.ts";

export interface LatchkeyProcess {
  readonly pid: number;
  /** Set once the process serves. */
  readonly baseUrl: string;
  readonly internalUrl: string;
  stdout(): string;
  stderr(): string;
  kill(signal: NodeJS.Signals): void;
  /** Resolves to the exit code, or the signal that ended it. */
  readonly exited: Promise<number | NodeJS.Signals>;
}

/**
 * Only the variables that a process needs: no LATCHKEY_* or PORT of the machine is passed on. Its home, where it keeps
 * compiled code, is used by this run only.
 */
function bareEnvironment(extra: Record<string, string>): Record<string, string> {
  return { PATH: process.env.PATH ?? "", HOME: join(artefactFolder(), "home"), ...extra };
}

/** Runs `latchkey` for real and resolves when it has ended, by itself unless it is killed before. */
export async function runLatchkey(
  args: readonly string[],
  environment: Record<string, string> = {},
  program = builtProgram(),
  killed: Promise<unknown> = new Promise(() => {}),
) {
  const child = spawn(process.execPath, [program, ...args], { env: bareEnvironment(environment) });
  atTestEnd(() => void child.kill("SIGKILL"));
  const output = collect(child);
  void killed.then(() => child.kill("SIGKILL"));
  const [code] = (await once(child, "close")) as [number | null];
  return { code, ...output() };
}

/**
 * Starts `latchkey serve` in a process of its own, on ports of its own, and resolves when it serves. It is the one that
 * was built for this run unless another command is given, as a list or as a file that takes `serve`. It is killed at the
 * end of the test; a program that is no test says what its end is, and can read its log before it serves.
 */
export async function startLatchkey(
  environment: Record<string, string>,
  command: string | readonly [string, ...string[]] = [process.execPath, builtProgram(), "serve"],
  atEnd: (undo: () => void, stderr: () => string) => void = (undo) => atTestEnd(undo),
): Promise<LatchkeyProcess> {
  const env = bareEnvironment({ PORT: "0", LATCHKEY_INTERNAL_PORT: "0", ...environment });
  const [file, ...args] = typeof command === "string" ? [command, "serve"] : command;
  const child = spawn(file, args, { env });
  const output = collect(child);
  atEnd(
    () => void child.kill("SIGKILL"),
    () => output().stderr,
  );
  const exited = once(child, "close").then(([code, signal]) => (code ?? signal) as number | NodeJS.Signals);
  const serving = new Promise<{ port: number; internalPort: number }>((resolve) => {
    child.stderr?.on("data", () => {
      const line = output()
        .stderr.split("\n")
        .find((text) => text.includes('"msg":"serving"'));
      if (line !== undefined) resolve(JSON.parse(line));
    });
  });
  const first = await Promise.race([serving, exited]);
  if (typeof first !== "object") throw new Error(`latchkey ended with ${first}: ${output().stderr}`);
  return {
    pid: child.pid as number,
    baseUrl: `http://127.0.0.1:${first.port}`,
    internalUrl: `http://127.0.0.1:${first.internalPort}`,
    stdout: () => output().stdout,
    stderr: () => output().stderr,
    kill: (signal) => void child.kill(signal),
    exited,
  };
}

function collect(child: ChildProcess): () => { stdout: string; stderr: string } {
  let stdout = "";
  let stderr = "";
  child.stdout?.on("data", (chunk) => {
    stdout += chunk;
  });
  child.stderr?.on("data", (chunk) => {
    stderr += chunk;
  });
  return () => ({ stdout, stderr });
}
