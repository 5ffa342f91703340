import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Answer } from "./answers.ts";
import type { CallerCommand, CallerReport } from "./caller.ts";
import type { Network } from "./network.ts";
import { edgePort } from "./processes.ts";

export interface NamedSecret {
  readonly name: string;
  readonly secret: string;
}

export interface RunningLoad {
  /** Resolves when no call is under way any more. */
  stop(): Promise<void>;
  /** Resolves when a load with a number of rounds has had its last answer. */
  readonly done: Promise<void>;
}

const program = join(import.meta.dirname, "caller.ts");

/** The calling program inside one host. All its answers go to one log. */
export class Caller {
  readonly #process: ChildProcess;
  readonly #whenReported = new Map<number, (report: CallerReport) => void>();
  readonly #host: string;
  readonly #log: Answer[];
  #ids = 0;

  constructor(network: Network, host: string, log: Answer[]) {
    const [file, ...args] = network.inside(host, process.execPath, [program]);
    this.#host = host;
    this.#log = log;
    this.#process = spawn(file, args, { env: { PATH: process.env.PATH ?? "" }, stdio: ["pipe", "pipe", "inherit"] });
    this.#process.stdin?.on("error", () => {});
    createInterface({ input: this.#process.stdout as NodeJS.ReadableStream }).on("line", (line) => {
      const report = JSON.parse(line) as CallerReport;
      this.#whenReported.get(report.id)?.(report);
    });
  }

  load(keys: readonly NamedSecret[], perSecond: number, rounds?: number): RunningLoad {
    const id = ++this.#ids;
    const done = new Promise<void>((resolve) => {
      this.#whenReported.set(id, ({ answers = [], isDone }) => {
        for (const answer of answers) this.#log.push({ edge: this.#host, ...answer });
        if (isDone) resolve();
      });
    });
    this.#send({ do: "load", id, port: edgePort, keys, perSecond, ...(rounds !== undefined && { rounds }) });
    const stop = () => {
      this.#send({ do: "stop", id });
      return done;
    };
    return { stop, done };
  }

  close(): void {
    this.#process.stdin?.end();
  }

  #send(command: CallerCommand): void {
    this.#process.stdin?.write(`${JSON.stringify(command)}\n`);
  }
}
