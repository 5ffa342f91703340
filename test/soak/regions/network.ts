import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { isExecutable, pathFolders } from "../../support/debian-programs.ts";

/** A place in the network. Everything it sends and everything it is sent is late by its delay. */
export interface Host {
  readonly name: string;
  readonly address: string;
  /** One way. */
  readonly delayMs: number;
}

/** Packets from one host to another one. */
export interface Route {
  readonly from: string;
  readonly to: string;
}

const program = join(import.meta.dirname, "network.py");
const closeMs = 15_000;

/** What this machine lacks for such a network, by name. Empty: it has everything. */
export function missingForNetwork(): string[] {
  const missing: string[] = [];
  if (process.getuid?.() !== 0) missing.push("root");
  if (!existsSync("/dev/net/tun")) missing.push("/dev/net/tun");
  if (!isOnPath("ip")) missing.push("ip (iproute2)");
  if (!isOnPath("python3")) missing.push("python3");
  if (!isOnPath("nsenter")) missing.push("nsenter (util-linux)");
  return missing.length > 0 ? missing : missingRights();
}

/** Root inside a container may not be allowed what root is. */
function missingRights(): string[] {
  const name = `lkprobe${process.pid}`;
  try {
    execFileSync("ip", ["netns", "add", name], { stdio: "pipe" });
    execFileSync("ip", ["netns", "del", name], { stdio: "pipe" });
    return [];
  } catch (error) {
    return [`the right to make network namespaces (${String((error as { stderr?: unknown }).stderr).trim()})`];
  }
}

function isOnPath(name: string): boolean {
  return pathFolders().some((folder) => isExecutable(join(folder, name)));
}

/** Hosts around a router, each a network namespace of this machine, made and removed by `network.py`. */
export class Network {
  readonly #hosts: ReadonlyMap<string, Host>;
  readonly #process: ChildProcess;
  readonly #answers: AsyncIterator<string>;
  #prefix = "";
  #errors = "";
  /** Commands are answered in order. */
  #last: Promise<unknown> = Promise.resolve();

  private constructor(hosts: readonly Host[]) {
    this.#hosts = new Map(hosts.map((host) => [host.name, host]));
    // In a session of its own, so that Ctrl-C does not reach it: it ends, and removes everything, when its input ends.
    this.#process = spawn("python3", [program], { detached: true, stdio: ["pipe", "pipe", "pipe"] });
    this.#process.stderr?.on("data", (chunk) => {
      this.#errors += chunk;
    });
    this.#process.stdin?.on("error", () => {});
    this.#answers = createInterface({ input: this.#process.stdout as NodeJS.ReadableStream })[Symbol.asyncIterator]();
  }

  /** Resolves when every host reaches every other one. */
  static async start(hosts: readonly Host[]): Promise<Network> {
    const network = new Network(hosts);
    try {
      const { prefix } = await network.#command({ do: "up", hosts });
      network.#prefix = prefix as string;
      return network;
    } catch (error) {
      await network.close();
      throw error;
    }
  }

  addressOf(host: string): string {
    const found = this.#hosts.get(host);
    if (found === undefined) throw new Error(`there is no host ${host}`);
    return found.address;
  }

  /** The command that runs a program inside a host; its process id is the program's. As root unless told. */
  inside(
    host: string,
    file: string,
    args: readonly string[],
    user?: { uid?: number; gid?: number },
  ): [string, ...string[]] {
    this.addressOf(host);
    const as = user?.uid === undefined ? [] : ["--setuid", String(user.uid), "--setgid", String(user.gid)];
    return ["nsenter", `--net=/run/netns/${this.#prefix}-${host}`, ...as, "--", file, ...args];
  }

  /** From now on packets on these routes vanish. No sender is told. */
  async cut(routes: readonly Route[]): Promise<void> {
    await this.#command({ do: "cut", pairs: routes });
  }

  async heal(routes: readonly Route[]): Promise<void> {
    await this.#command({ do: "heal", pairs: routes });
  }

  /** Kills every process inside the hosts, and removes the hosts. */
  async close(): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    const exited = once(this.#process, "exit", { signal: AbortSignal.timeout(closeMs) });
    this.#process.stdin?.end();
    const [code] = await exited;
    if (code !== 0) throw new Error(`network.py ended with ${code}: ${this.#errors}`);
  }

  #command(command: object): Promise<Record<string, unknown>> {
    const answered = this.#last.then(async () => {
      this.#process.stdin?.write(`${JSON.stringify(command)}\n`);
      const { value, done } = await this.#answers.next();
      if (done) throw new Error(`network.py has ended: ${this.#errors}`);
      const answer = JSON.parse(value) as Record<string, unknown>;
      if (answer.error !== undefined) throw new Error(`network.py: ${answer.error}`);
      return answer;
    });
    this.#last = answered.catch(() => {});
    return answered;
  }
}
