import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chownSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { MaybePromise } from "../../src/domain/maybe-promise.ts";

const nobody = 65_534;
/** Ends a hang. */
const startMs = 120_000;
const portsTried = 20;

const takenPort = /address already in use/i;

/** A server program of the test's own: a temporary folder, a loopback port of its own, an unprivileged user. */
export abstract class LocalServer {
  protected readonly folder: string;
  #port: number;
  #process: ChildProcess | undefined;

  /** Without a port, the first start finds one. */
  protected constructor(name: string, port = 0) {
    this.#port = port;
    this.folder = mkdtempSync(join(tmpdir(), `latchkey-${name}-`));
    if (runAs.uid !== undefined) chownSync(this.folder, runAs.uid, runAs.gid);
  }

  /** Known when the server starts for the first time, and the same from then on. */
  get port(): number {
    return this.#port;
  }

  /** Of the first process; the others are its children. */
  get pid(): number | undefined {
    return this.#process?.pid;
  }

  /** Ends every process of the server at once, as a crash of the machine would. */
  kill(): Promise<void> {
    return this.end(() => {
      // One that is stopped begins no further process, which would live on.
      this.signal("SIGSTOP");
      this.#signalAll("SIGKILL");
    });
  }

  /** Stops every process of the server from running, or lets them go on: it holds its connections and says nothing. */
  pause(): void {
    this.#signalAll("SIGSTOP");
  }

  resume(): void {
    this.#signalAll("SIGCONT");
  }

  /** Kills the server and removes its folder. */
  async remove(): Promise<void> {
    await this.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }

  /**
   * Starts the program, under this name and as this user, and resolves when the server answers. `prepare` writes what depends
   * on the port and returns the arguments. If the first start finds its port taken, it tries another port.
   */
  protected async launch(
    program: string,
    prepare: () => MaybePromise<readonly string[]>,
    answers: () => Promise<unknown>,
    argv0 = program,
    user: { uid?: number; gid?: number } = runAs,
  ): Promise<void> {
    const isFirst = this.#port === 0;
    for (let tries = 1; ; tries++) {
      if (isFirst) this.#port = await freePort();
      try {
        return await this.#launch(program, await prepare(), answers, argv0, user);
      } catch (error) {
        if (!isFirst || tries === portsTried || !takenPort.test((error as Error).message)) throw error;
      }
    }
  }

  async #launch(
    program: string,
    args: readonly string[],
    answers: () => Promise<unknown>,
    argv0: string,
    user: { uid?: number; gid?: number },
  ): Promise<void> {
    const child = spawn(program, args, { ...user, argv0, stdio: ["ignore", "pipe", "pipe"] });
    let log = "";
    const read = (chunk: unknown) => {
      log = (log + chunk).slice(-20_000);
    };
    child.on("error", read);
    for (const stream of [child.stdout, child.stderr]) stream.on("data", read);
    this.#process = child;
    const deadline = performance.now() + startMs;
    for (;;) {
      if (!isRunning(child) || performance.now() > deadline) {
        await this.kill();
        throw new Error(`${argv0} did not start:\n${log}`);
      }
      const answered = await answers().then(
        () => true,
        () => false,
      );
      if (answered) return;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  /** Signals the first process only. */
  protected signal(name: NodeJS.Signals): void {
    this.#process?.kill(name);
  }

  /** Does what ends the server, if it runs, and waits until it has. */
  protected async end(how: () => void): Promise<void> {
    const child = this.#process;
    if (child === undefined || !isRunning(child)) return;
    const exited = once(child, "exit");
    how();
    await exited;
  }

  #signalAll(name: NodeJS.Signals): void {
    const child = this.#process;
    if (child?.pid === undefined || !isRunning(child)) return;
    for (const pid of [child.pid, ...childrenOf(child.pid)]) signal(pid, name);
  }
}

/** For programs that refuse to run as root, and because no test needs a server that does. */
export const runAs = process.getuid?.() === 0 ? { uid: nobody, gid: nobody } : {};

/** The system gives ports from here on to connections and to servers that ask for any. */
const systemPortsFrom = Number(readFileSync("/proc/sys/net/ipv4/ip_local_port_range", "utf8").split(/\s/)[0]);
const portsFrom = systemPortsFrom > 16_000 ? 10_000 : 61_000;
const portsTo = systemPortsFrom > 16_000 ? systemPortsFrom : 65_536;
/** Test files that run side by side take their ports from different parts of the range. */
const parts = 8;
const portsOfPart = Math.floor((portsTo - portsFrom) / parts);
const firstOfPart = portsFrom + (Number(process.env.VITEST_POOL_ID ?? 0) % parts) * portsOfPart;
let nextPort = Math.floor(Math.random() * portsOfPart);

/**
 * A port for a server that cannot choose one itself, or that is started again on the same. Neither the system nor another
 * test file gives it to anything else, so it is still free when the server binds it.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = firstOfPart + (nextPort++ % portsOfPart);
    if (await canBind(port)) return port;
  }
}

/** Some other program of this machine may have it. */
function canBind(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = net.createServer();
    server.on("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}

function isRunning(child: ChildProcess): boolean {
  return child.pid !== undefined && child.exitCode === null && child.signalCode === null;
}

/** A server's processes are all children of the first. */
export function childrenOf(parent: number): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        return Number(readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ")[1]) === parent;
      } catch {
        return false;
      }
    });
}

export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // Gone already.
  }
}
