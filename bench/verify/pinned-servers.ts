import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

export interface PinnedServer {
  readonly port: number;
  /** Processor time that it has taken so far, all threads together. */
  cpuMs(): number;
  stop(): Promise<void>;
}

const serverCore = "0";

/** Runs a script of Node's on the servers' core; `portOf` finds its port in a line that it prints. */
export async function startPinned(
  args: readonly string[],
  portOf: (line: string) => number | undefined,
  env: Record<string, string> = {},
): Promise<PinnedServer> {
  const child = spawn("taskset", ["-c", serverCore, process.execPath, ...args], {
    env: { PATH: process.env.PATH ?? "", HOME: process.env.HOME ?? "", ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const port = await findPort(child, portOf);
  return {
    port,
    cpuMs: () => cpuMsOf(child.pid as number),
    async stop() {
      const exited = once(child, "exit");
      child.kill();
      await exited;
    },
  };
}

/** The system counts in ticks of 10 ms. */
function cpuMsOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

function findPort(child: ChildProcess, portOf: (line: string) => number | undefined): Promise<number> {
  return new Promise((resolve, reject) => {
    const said: string[] = [];
    for (const input of [child.stdout, child.stderr]) {
      if (input === null) continue;
      createInterface({ input }).on("line", (line) => {
        said.push(line);
        const port = portOf(line);
        if (port !== undefined) resolve(port);
      });
    }
    child.once("exit", () => reject(new Error(`a server ended before it served:\n${said.join("\n")}`)));
  });
}
