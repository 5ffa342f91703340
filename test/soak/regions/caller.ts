/*
 * Runs inside an edge's namespace and calls the edge there, as a customer's backend beside it would. Driven by lines of
 * JSON on standard input; what it finds out goes to standard output as lines of JSON. Ends with its input.
 */
import http from "node:http";
import { createInterface } from "node:readline";
import type { Answer, Outcome } from "./answers.ts";
import { monotonicMs } from "./clock.ts";

/** Verifies keys in turn at a steady pace, whether answers come or not. */
export interface LoadCommand {
  readonly do: "load";
  readonly id: number;
  readonly port: number;
  readonly keys: readonly { readonly name: string; readonly secret: string }[];
  readonly perSecond: number;
  /** How often each key is verified. Absent: until `stop`. */
  readonly rounds?: number;
}

export type CallerCommand = LoadCommand | { readonly do: "stop"; readonly id: number };

export interface CallerReport {
  /** The load's. */
  readonly id: number;
  readonly answers?: readonly Omit<Answer, "edge">[];
  /** Every call has ended. */
  readonly isDone?: boolean;
}

const paceMs = 5;
const reportMs = 100;
const answerMs = 10_000;
const agent = new http.Agent({ keepAlive: true, maxSockets: 512 });

class Load {
  readonly #command: LoadCommand;
  readonly #startMs = monotonicMs();
  readonly #timers: NodeJS.Timeout[];
  #sent = 0;
  #pending = 0;
  #isStopped = false;
  #answers: Omit<Answer, "edge">[] = [];

  constructor(command: LoadCommand) {
    this.#command = command;
    this.#timers = [setInterval(() => this.#sendDue(), paceMs), setInterval(() => this.#report(), reportMs)];
  }

  /** No new calls. Those under way are still reported. */
  stop(): void {
    this.#isStopped = true;
    this.#endIfOver();
  }

  #sendDue(): void {
    const { keys, perSecond, rounds } = this.#command;
    const inAll = rounds === undefined ? Number.POSITIVE_INFINITY : rounds * keys.length;
    const due = Math.min(inAll, Math.ceil(((monotonicMs() - this.#startMs) * perSecond) / 1000));
    while (!this.#isStopped && this.#sent < due) void this.#verify(this.#sent++ % keys.length);
    if (this.#sent === inAll) this.stop();
  }

  async #verify(index: number): Promise<void> {
    const key = this.#command.keys[index];
    if (key === undefined) return;
    this.#pending++;
    const sentMs = monotonicMs();
    const seen = await verify(this.#command.port, key.secret);
    this.#answers.push({ key: key.name, sentMs, answeredMs: monotonicMs(), ...seen });
    this.#pending--;
    this.#endIfOver();
  }

  #endIfOver(): void {
    if (!this.#isStopped || this.#pending > 0) return;
    for (const timer of this.#timers) clearInterval(timer);
    this.#report();
    tell({ id: this.#command.id, isDone: true });
  }

  #report(): void {
    if (this.#answers.length === 0) return;
    tell({ id: this.#command.id, answers: this.#answers });
    this.#answers = [];
  }
}

function verify(port: number, secret: string): Promise<{ outcome: Outcome; resetMs?: number; remaining?: number }> {
  return new Promise((resolve) => {
    const request = http.request(
      {
        agent,
        port,
        host: "127.0.0.1",
        method: "POST",
        path: "/v1/keys.verifyKey",
        headers: { "content-type": "application/json" },
        timeout: answerMs,
      },
      (response) => {
        let text = "";
        response.setEncoding("utf8");
        response.on("data", (chunk) => {
          text += chunk;
        });
        response.on("end", () => resolve(outcomeOf(response.statusCode ?? 0, text)));
        response.on("error", () => resolve({ outcome: "unanswered" }));
      },
    );
    request.on("timeout", () => request.destroy(new Error("no answer in time")));
    request.on("error", ({ code }: NodeJS.ErrnoException) => {
      resolve({ outcome: code === "ECONNREFUSED" ? "refused" : "unanswered" });
    });
    request.end(JSON.stringify({ key: secret }));
  });
}

function outcomeOf(status: number, text: string): { outcome: Outcome; resetMs?: number; remaining?: number } {
  if (status === 503) return { outcome: "unavailable" };
  if (status !== 200) return { outcome: `odd: status ${status}` };
  const { valid, code, remaining, ratelimit } = JSON.parse(text) as {
    valid: boolean;
    code: string;
    remaining?: number;
    ratelimit?: { reset: number };
  };
  const seen = {
    ...(ratelimit !== undefined && { resetMs: ratelimit.reset }),
    ...(remaining !== undefined && { remaining }),
  };
  if (valid) return { outcome: "admitted", ...seen };
  return { outcome: code === "RATE_LIMITED" ? "limited" : `odd: ${code}`, ...seen };
}

function tell(report: CallerReport): void {
  process.stdout.write(`${JSON.stringify(report)}\n`);
}

const loads = new Map<number, Load>();
const commands = createInterface({ input: process.stdin });
commands.on("line", (line) => {
  const command = JSON.parse(line) as CallerCommand;
  if (command.do === "load") loads.set(command.id, new Load(command));
  else loads.get(command.id)?.stop();
});
commands.on("close", () => process.exit(0));
