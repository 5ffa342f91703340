import type { HonestReport } from "./honest-client.ts";

/** What was seen while one attack went on. */
export interface Measured {
  /** Why the process ended, if it did. */
  readonly ended: string | undefined;
  /** What was wrong from the attacker's own view. */
  readonly problems: readonly string[];
  /** The honest client right before the attack, and during it. */
  readonly quiet: HonestReport | undefined;
  readonly attacked: HonestReport | undefined;
  /** The median of all quiet times of this run. */
  readonly quietP99Ms: number;
  /** Of the time in which processes wanted to run, how much the machine got: 1 unless others share its processors. */
  readonly processorShare: number;
  /** Memory of the process after the warm-up, before this attack, and at most during it. */
  readonly warmBytes: number;
  readonly startBytes: number;
  readonly peakBytes: number;
  readonly tookMs: number;
  /** New log lines. They are printed but are no findings: a service may log attacks that it withstands. */
  readonly complaints: readonly string[];
}

/** By one attack. */
const grownBytesMax = 80 * 1024 * 1024;
/** By all since the warm-up. */
const grownInAllBytesMax = 160 * 1024 * 1024;
/**
 * The engine collects its old generation every few seconds of an attack and takes 0.1 to 0.3 s for it (adr 16). Without a
 * budget for each connection it was 1.4 s and more.
 */
const p99MsMax = 500;
/** During all attacks on one victim together. */
const p99InAllMsMax = 50;
const p99TimesMax = 10;
const controlTimesMax = 3;

export interface Judgement {
  readonly findings: readonly string[];
  /** Whether all that was found are late answers and memory, which a busy machine or a late collection can bring about. */
  readonly isUncertain: boolean;
  readonly hasGrown: boolean;
  readonly summary: string;
}

/** What must hold throughout: the process lives, memory is bounded, whole requests are answered, an honest client is served. */
export function judge(measured: Measured): Judgement {
  const { ended, problems, quiet, attacked, quietP99Ms, processorShare, complaints } = measured;
  const { warmBytes, startBytes, peakBytes, tookMs } = measured;
  const grownBytes = peakBytes - startBytes;
  const findings = [...problems];
  if (ended !== undefined) findings.push(`the process has ended: ${ended}`);
  const hasGrown = grownBytes > grownBytesMax || peakBytes - warmBytes > grownInAllBytesMax;
  if (hasGrown) {
    findings.push(
      `memory grew by ${megabytes(grownBytes)}, from ${megabytes(startBytes)}; it was ${megabytes(warmBytes)} after the warm-up`,
    );
  }
  for (const wrong of [...(quiet?.wrong ?? []), ...(attacked?.wrong ?? [])]) {
    findings.push(`the honest client was served wrong: ${wrong}`);
  }
  if (attacked?.tookMs.length === 0) findings.push("the honest client had no answer at all");
  const late = attacked && judgeLate(attacked, quietP99Ms, p99MsMax / processorShare);
  if (late !== undefined) findings.push(late);
  const isUncertain = findings.length > 0 && findings.length === Number(hasGrown) + Number(late !== undefined);
  const honest = attacked && [
    `honest p99 ${p99(attacked.tookMs).toFixed(1)} ms of ${attacked.tookMs.length}`,
    `(quiet ${quietP99Ms.toFixed(1)} ms, of a server that is not attacked ${p99(attacked.controlTookMs).toFixed(1)} ms)`,
  ];
  const summary = [
    `${(tookMs / 1000).toFixed(1)} s, memory ${megabytes(startBytes)} + ${megabytes(grownBytes)}, ${honest?.join(" ") ?? "no honest answers"}`,
    ...complaints.map((complaint) => `  logged: ${complaint.slice(0, 500)}`),
    ...findings.map((finding) => `  FOUND ${finding.slice(0, 500)}`),
  ].join("\n");
  return { findings, isUncertain, hasGrown, summary };
}

type Waits = Pick<HonestReport, "tookMs" | "controlTookMs">;

/** Of all attacks on one victim together. */
export function judgeInAll(waits: Waits, quietP99Ms: number, processorShare: number): string | undefined {
  return judgeLate(waits, quietP99Ms, p99InAllMsMax / processorShare);
}

function judgeLate({ tookMs, controlTookMs }: Waits, quietP99Ms: number, maxMs: number): string | undefined {
  const limitMs = Math.max(maxMs, p99TimesMax * quietP99Ms);
  const seenMs = p99(tookMs);
  // On a machine that is busy with other things every server is late.
  if (seenMs <= limitMs || seenMs <= controlTimesMax * p99(controlTookMs)) return undefined;
  return `the honest client's p99 was ${seenMs.toFixed(1)} ms, above ${limitMs.toFixed(1)} ms`;
}

export function p99(numbers: readonly number[]): number {
  return [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length * 0.99)] ?? 0;
}

function megabytes(bytes: number): string {
  return `${Math.round(bytes / 1024 / 1024)} MB`;
}
