import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chownSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

const nobody = 65_534;
const startMs = 30_000;

/** A server program of the test's own: a temporary folder, a free loopback port, an unprivileged user. */
export abstract class LocalServer {
  readonly port: number;
  protected readonly folder: string;
  #process: ChildProcess | undefined;

  protected constructor(name: string, port: number) {
    this.port = port;
    this.folder = mkdtempSync(join(tmpdir(), `latchkey-${name}-`));
    if (runAs.uid !== undefined) chownSync(this.folder, runAs.uid, runAs.gid);
  }

  /** Of the first process; the others are its children. */
  get pid(): number | undefined {
    return this.#process?.pid;
  }

  /** Ends every process of the server at once, as a crash of the machine would. */
  kill(): Promise<void> {
    return this.end(() => this.#signalAll("SIGKILL"));
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

  /** Starts the program, under this name and as this user, and resolves when the server answers. */
  protected async launch(
    program: string,
    args: readonly string[],
    answers: () => Promise<unknown>,
    argv0 = program,
    user: { uid?: number; gid?: number } = runAs,
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

export function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = net.createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address() as net.AddressInfo;
      server.close(() => resolve(port));
    });
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
