import { spawn } from "node:child_process";
import { once } from "node:events";
import os from "node:os";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { CheckResult } from "./check-data.ts";

export interface FileCheck {
  /** Starts reading the file. Before that the process only prepares. */
  begin(): void;
  readonly result: Promise<CheckResult>;
  /** Stops the check, finished or not. */
  stop(): Promise<void>;
}

export type PrepareCheck = (file: string) => FileCheck;

/** A low priority. Lower ones are for programs that run only on an idle machine. */
const lowPriority = 10;

/**
 * Checks a whole data file, which takes minutes for gigabytes. In a process, not in a thread: a thread inside SQLite
 * cannot be stopped, so the service could not stop before the check is done.
 */
export function prepareFileCheck(file: string): FileCheck {
  const program = fileURLToPath(new URL("./check-process.ts", import.meta.url));
  const { NODE_OPTIONS: _, ...env } = process.env;
  const child = spawn(process.execPath, [program, file], { stdio: ["pipe", "pipe", "ignore"], env });
  child.stdin.on("error", () => {});
  const ended = once(child, "close").catch((error: NodeJS.ErrnoException) => [error.code]);
  const result = new Promise<CheckResult>((resolve) => {
    // Read before the process has ended: its end takes longer than the check of a small file.
    createInterface(child.stdout).once("line", (line) => resolve(JSON.parse(line) as CheckResult));
    void ended.then(([code, signal]) => resolve({ outcome: "unknown", reason: `it ended with ${code ?? signal}` }));
  });
  return {
    begin() {
      lowerPriority(child.pid);
      child.stdin.end("begin\n");
    },
    result,
    async stop() {
      child.kill("SIGKILL");
      await ended;
    },
  };
}

/** Gives requests priority. If the system does not allow it, the check competes with them. */
function lowerPriority(pid: number | undefined): void {
  try {
    if (pid !== undefined) os.setPriority(pid, lowPriority);
  } catch {
    // The system does not allow it.
  }
}
