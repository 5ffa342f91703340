import { type ChildProcess, fork, type SendHandle } from "node:child_process";
import type { Socket } from "node:net";
import type { MetricsSnapshot } from "../../ambient/metrics.ts";
import type { ConnectionTaker } from "./connection-dealer.ts";
import type { MainMethods, WorkerMethods } from "./methods.ts";
import { ProcessLink } from "./process-link.ts";

/** A worker that has not exited so long after it was asked to is killed. */
const exitMs = 5000;

/** A worker process, as the main process sees it. */
export class Worker implements ConnectionTaker {
  readonly number: number;
  /** Resolves with how it has ended. */
  readonly exited: Promise<string>;
  /** The last one that it has sent. */
  lastSnapshot: MetricsSnapshot = [];
  readonly #process: ChildProcess;
  readonly #link: ProcessLink<MainMethods, WorkerMethods>;

  constructor(number: number, main: MainMethods) {
    this.number = number;
    this.#process = fork(new URL("./worker-process.ts", import.meta.url), [`worker-${number}`], {
      stdio: ["ignore", "inherit", "inherit", "ipc"],
      serialization: "advanced",
    });
    this.#link = new ProcessLink(this.#process, main);
    this.exited = new Promise((resolve) => {
      this.#process.once("exit", (code, signal) => resolve(signal ?? `exit code ${code}`));
      // It could not be started.
      this.#process.on("error", (error) => resolve(error.message));
    });
    // After everything that it had sent was read. Not `disconnect`, which never comes while a handle is being sent.
    this.#process.once("close", () => this.#link.end());
  }

  readonly ask: ProcessLink<MainMethods, WorkerMethods>["ask"] = (...call) => this.#link.ask(...call);

  async take(socket: Socket): Promise<void> {
    // The handle itself, as `node:cluster` sends it: with the socket, Node would track it in both processes.
    const { _handle: handle } = socket as unknown as { _handle?: SendHandle };
    await this.#link.askWith(handle, "takeConnection");
  }

  async snapshot(): Promise<MetricsSnapshot> {
    this.lastSnapshot = await this.#link.ask("snapshot").catch(() => this.lastSnapshot);
    return this.lastSnapshot;
  }

  /** Ends it. Resolves when the process is gone. */
  async stop(): Promise<void> {
    const kill = setTimeout(() => this.#process.kill("SIGKILL"), exitMs);
    await this.#link.ask("stop").catch(() => {});
    if (this.#process.connected) this.#process.disconnect();
    await this.exited;
    clearTimeout(kill);
  }
}
