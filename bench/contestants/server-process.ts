import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import type { Bench } from "../harness/section.ts";

export interface ServerProcess {
  readonly pid: number;
  readonly port: number;
  /** Processor time that it has taken so far, with that of its worker processes. */
  cpuMs(): number;
  /** Also with theirs. */
  residentBytes(): number;
}

export interface ServerOptions {
  readonly environment?: Readonly<Record<string, string>>;
  /** `false`: on all cores, beside the load. */
  readonly pinned?: boolean;
}

export const serverCore = "0";
const patienceMs = 5000;

/** Runs a script of Node's until the section ends; `portOf` finds its port in a line that it prints. */
export async function startServer(
  bench: Pick<Bench, "atEnd">,
  args: readonly string[],
  portOf: (line: string) => number | undefined,
  { environment = {}, pinned = true }: ServerOptions = {},
): Promise<ServerProcess> {
  const command = [...(pinned ? ["taskset", "-c", serverCore] : []), process.execPath, ...args] as [string];
  const child = spawn(command[0], command.slice(1), {
    env: { PATH: process.env.PATH ?? "", HOME: process.env.HOME ?? "", ...environment },
    stdio: ["ignore", "pipe", "pipe"],
  });
  bench.atEnd(() => stop(child));
  const port = await findPort(child, portOf);
  const pid = child.pid as number;
  const sum = (figureOf: (pid: number) => number) =>
    [pid, ...childrenOf(pid)].reduce((all, each) => all + figureOf(each), 0);
  return { pid, port, cpuMs: () => sum(cpuMsOf), residentBytes: () => sum(residentBytesOf) };
}

/** For scripts that print nothing but their port. */
export function barePort(line: string): number | undefined {
  return /^\d+$/.test(line) ? Number(line) : undefined;
}

/** In order, so that a profile is written; at once where that takes too long. */
async function stop(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  child.removeAllListeners("exit");
  const exited = once(child, "exit");
  child.kill();
  const impatience = setTimeout(() => child.kill("SIGKILL"), patienceMs);
  await exited;
  clearTimeout(impatience);
}

/** The system counts in ticks of 10 ms. */
export function cpuMsOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

function childrenOf(pid: number): number[] {
  const threads = readdirSync(`/proc/${pid}/task`);
  const lists = threads.map((thread) => readFileSync(`/proc/${pid}/task/${thread}/children`, "utf8"));
  return lists.flatMap((list) => list.split(" ").filter(Boolean).map(Number));
}

export function residentBytesOf(pid: number): number {
  const [, kilobytes] = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(kilobytes) * 1024;
}

function findPort(child: ChildProcess, portOf: (line: string) => number | undefined): Promise<number> {
  return new Promise((resolve, reject) => {
    const said: string[] = [];
    for (const input of [child.stdout, child.stderr]) {
      if (input === null) continue;
      createInterface({ input }).on("line", (line) => {
        said.push(line);
        if (said.length > 100) said.shift();
        const port = portOf(line);
        if (port !== undefined) resolve(port);
      });
    }
    child.once("error", reject);
    child.once("exit", (code, signal) => {
      const why = `a server ended with ${code ?? signal}:\n${said.join("\n")}`;
      // A load that is already running would only report that the server does not answer.
      console.error(why);
      reject(new Error(why));
    });
  });
}
