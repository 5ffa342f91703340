import { spawn } from "node:child_process";
import { once } from "node:events";
import os from "node:os";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { CheckResult } from "./check-data.ts";

export interface FileCheck {
  /** Begins to read the file. Until then the process only gets ready. */
  begin(): void;
  readonly result: Promise<CheckResult>;
  /** Ends it, however far it is. */
  stop(): Promise<void>;
}

export type PrepareCheck = (file: string) => FileCheck;

/** Below this priority come only programs that run when nothing else does. */
const lowPriority = 10;

/**
 * A check of a whole data file, which takes minutes for gigabytes. It is a process and not a thread, because a thread
 * inside SQLite cannot be stopped: the service could not end before the check does.
 */
export function prepareFileCheck(file: string): FileCheck {
  const program = fileURLToPath(new URL("./check-process.ts", import.meta.url));
  const { NODE_OPTIONS: _, ...env } = process.env;
  const child = spawn(process.execPath, [program, file], { stdio: ["pipe", "pipe", "ignore"], env });
  child.stdin.on("error", () => {});
  const ended = once(child, "close").catch((error: NodeJS.ErrnoException) => [error.code]);
  const result = new Promise<CheckResult>((resolve) => {
    // Read before the process has ended, which takes longer than the check of a small file.
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

/** Requests come first. Where the system does not allow it, the check competes with them. */
function lowerPriority(pid: number | undefined): void {
  try {
    if (pid !== undefined) os.setPriority(pid, lowPriority);
  } catch {
    // As said above.
  }
}
