import { type ChildProcess, fork } from "node:child_process";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { watchProcessors } from "../../support/processors.ts";
import { isLong } from "../run-options.ts";
import { type AttackOrder, type AttackReport, pauseMs } from "./field.ts";
import type { HonestOrder, HonestReport } from "./honest-client.ts";
import { judge, judgeInAll, type Measured, p99 } from "./judge.ts";
import { residentBytes, type Victim } from "./victim.ts";

const quietForMs = 200;
const settleMs = 100;
const warmUpMs = 3000;
/** The engine's heap has its working size when the process has grown by less than this in so many warm-ups in a row. */
const steadyBytes = 8 * 1024 * 1024;
const steadyWarmUps = 3;
const warmUpsMax = isLong ? 12 : 1;
const attackMsMax = 40_000;
/** A busy machine makes any server late or large: only an attack that does so each time is found to. */
const triesMax = 3;

/** A victim, an attacker and an honest client, each in a process of its own. */
export class Arena {
  readonly #start: () => Promise<Victim>;
  readonly #tell: (line: string) => void;
  readonly #quietP99sMs: number[] = [];
  /** Of the honest client, during all attacks. */
  readonly #tookMs: number[] = [];
  readonly #controlTookMs: number[] = [];
  readonly #processors = watchProcessors();
  readonly #complaints = new Set<string>();
  #fighters: Fighters | undefined;

  /** The victim is started when it is needed, and again after it was harmed. */
  constructor(start: () => Promise<Victim>, tell: (line: string) => void) {
    this.#start = start;
    this.#tell = tell;
  }

  /** Resolves to the findings. Empty: the victim withstood the attack. */
  async run(attack: string, seed: number, forMs: number): Promise<readonly string[]> {
    let findings: readonly string[] = [];
    for (let tries = 1; tries <= triesMax; tries++) {
      const measured = await this.#measure(attack, seed, forMs);
      const judged = judge(measured);
      this.#tell(`${attack}: ${judged.summary}`);
      findings = judged.findings.map((finding) => `${attack}: ${finding}`);
      // Memory left behind by one attack does not count against the next.
      if (measured.ended !== undefined || judged.hasGrown) this.close();
      if (!judged.isUncertain) break;
    }
    return findings;
  }

  /** The findings over all attacks so far. */
  judgeInAll(): readonly string[] {
    const waits = { tookMs: this.#tookMs, controlTookMs: this.#controlTookMs };
    const whose = `of this server ${p99(waits.tookMs).toFixed(1)} ms, of one that is not attacked ${p99(waits.controlTookMs).toFixed(1)} ms`;
    this.#tell(`all attacks: honest p99 of ${waits.tookMs.length} answers ${whose}`);
    const late = judgeInAll(waits, median(this.#quietP99sMs), this.#processors.share());
    return late === undefined ? [] : [`all attacks: ${late}`];
  }

  close(): void {
    const fighters = this.#fighters;
    this.#fighters = undefined;
    fighters?.victim.stop();
    fighters?.honest.disconnect();
    fighters?.attacker.disconnect();
    fighters?.control.close();
  }

  async #measure(attack: string, seed: number, forMs: number): Promise<Measured> {
    this.#fighters ??= await this.#open();
    const { victim, honest, warmBytes } = this.#fighters;
    await pauseMs(settleMs);
    await Promise.race([ask(honest, "settle"), victim.ended]);
    await pauseMs(quietForMs);
    const quiet = await Promise.race([report(honest), victim.ended]);
    if (typeof quiet !== "string") this.#quietP99sMs.push(p99(quiet.tookMs));
    const startBytes = residentBytes(victim.pid);
    const memory = watchMemory(victim.pid);
    const processors = watchProcessors();
    const startedMs = performance.now();
    const outcome = await Promise.race([this.#attack(attack, seed, forMs), victim.ended, pauseMs(attackMsMax)]);
    const peakBytes = memory.stop();
    const tookMs = performance.now() - startedMs;
    // An attacker may see closed connections before the process has ended.
    const ended = await Promise.race([victim.ended, pauseMs(settleMs).then(() => undefined)]);
    const problems = typeof outcome === "object" ? outcome.problems : [];
    const attacked = ended === undefined ? await report(honest) : undefined;
    this.#tookMs.push(...(attacked?.tookMs ?? []));
    this.#controlTookMs.push(...(attacked?.controlTookMs ?? []));
    return {
      ended,
      problems: outcome === undefined ? [`the attack has not come to its end in ${attackMsMax} ms`] : problems,
      quiet: typeof quiet === "string" ? undefined : quiet,
      quietP99Ms: median(this.#quietP99sMs),
      attacked,
      processorShare: processors.share(),
      warmBytes,
      startBytes,
      peakBytes,
      tookMs,
      complaints: ended === undefined ? this.#newComplaints(await victim.complaints()) : [],
    };
  }

  /** Lines that were not reported before, without their unique parts. */
  #newComplaints(lines: readonly string[]): readonly string[] {
    const complaints = new Set(lines.map((line) => line.replace(/"(time|requestId|unlogged)":("[^"]*"|\d+),?/g, "")));
    const fresh = [...complaints].filter((complaint) => !this.#complaints.has(complaint));
    for (const complaint of fresh) this.#complaints.add(complaint);
    return fresh;
  }

  async #open(): Promise<Fighters> {
    const victim = await this.#start();
    const honest = fork(join(import.meta.dirname, "honest-client.ts"));
    const attacker = fork(join(import.meta.dirname, "attacker.ts"));
    const control = await startControl();
    this.#fighters = { victim, honest, attacker, control, warmBytes: 0 };
    const order: HonestOrder = { port: victim.port, controlPort: control.port, ...victim.honestKeys };
    honest.send(order);
    return { ...this.#fighters, warmBytes: await this.#warmUp() };
  }

  /** Resolves to the most that the victim held in memory. */
  async #warmUp(): Promise<number> {
    const { victim } = this.#fighters as Fighters;
    const memory = watchMemory(victim.pid);
    let largestBytes = 0;
    let steady = 0;
    for (let warmUps = 1; warmUps <= warmUpsMax && steady < steadyWarmUps; warmUps++) {
      await Promise.race([this.#attack("warm-up", warmUps, warmUpMs), victim.ended]);
      const bytes = residentBytes(victim.pid);
      steady = bytes < largestBytes + steadyBytes ? steady + 1 : 0;
      largestBytes = Math.max(largestBytes, bytes);
    }
    return memory.stop();
  }

  async #attack(attack: string, seed: number, forMs: number): Promise<AttackReport> {
    const { victim, attacker } = this.#fighters as Fighters;
    const { port, internalPort, attackedKeys: keys } = victim;
    const order: AttackOrder = { attack, seed, forMs, port, keys, ...(internalPort && { internalPort }) };
    return ask<AttackReport>(attacker, order);
  }
}

interface Fighters {
  readonly victim: Victim;
  readonly honest: ChildProcess;
  readonly attacker: ChildProcess;
  readonly control: Control;
  /** What the victim held in memory after the warm-ups. */
  readonly warmBytes: number;
}

interface Control {
  readonly port: number;
  close(): void;
}

/** A server that is not attacked. The honest client asks it as often. */
async function startControl(): Promise<Control> {
  const server = http.createServer((req, res) => req.resume().on("end", () => res.end("{}")));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  return { port: (server.address() as AddressInfo).port, close };
}

function report(honest: ChildProcess): Promise<HonestReport> {
  return ask<HonestReport>(honest, "report");
}

function ask<Answer>(child: ChildProcess, question: object | string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const gone = (code: number | null) => reject(new Error(`${child.spawnargs.at(-1)} has ended with ${code}`));
    child.once("exit", gone);
    child.once("message", (answer) => {
      child.off("exit", gone);
      resolve(answer as Answer);
    });
    child.send(question);
  });
}

/** Looks at the process's memory until it is stopped; answers the most that was seen. */
function watchMemory(pid: number): { stop(): number } {
  let peakBytes = residentBytes(pid);
  const look = () => {
    peakBytes = Math.max(peakBytes, residentBytes(pid));
  };
  const timer = setInterval(look, 20);
  return {
    stop() {
      clearInterval(timer);
      look();
      return peakBytes;
    },
  };
}

function median(numbers: readonly number[]): number {
  const sorted = [...numbers].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}
