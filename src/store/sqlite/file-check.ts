import { spawn } from "node:child_process";
import { once } from "node:events";
import os from "node:os";
import { fileURLToPath } from "node:url";

export type CheckResult =
  | { readonly outcome: "sound" }
  | { readonly outcome: "damaged"; readonly reason: string }
  /** The check itself failed; it says nothing about the file. */
  | { readonly outcome: "unknown"; readonly reason: string };

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
  // Beside this file, with its extension: TypeScript in the repository, JavaScript in the package.
  const extension = import.meta.url.slice(import.meta.url.lastIndexOf("."));
  const program = fileURLToPath(new URL(`./check-process${extension}`, import.meta.url));
  const { NODE_OPTIONS: _, ...env } = process.env;
  const child = spawn(process.execPath, [program, file], { stdio: ["pipe", "pipe", "ignore"], env });
  let output = "";
  child.stdout.on("data", (chunk) => {
    output += chunk;
  });
  child.stdin.on("error", () => {});
  const ended = once(child, "close");
  const result = ended.then(
    ([code, signal]): CheckResult => {
      if (output !== "") return JSON.parse(output) as CheckResult;
      return { outcome: "unknown", reason: `the check ended with ${code ?? signal}` };
    },
    (error: NodeJS.ErrnoException): CheckResult => ({ outcome: "unknown", reason: `no process: ${error.code}` }),
  );
  return {
    begin() {
      lowerPriority(child.pid);
      child.stdin.end("begin\n");
    },
    result,
    async stop() {
      child.kill("SIGKILL");
      await ended.catch(() => {});
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
