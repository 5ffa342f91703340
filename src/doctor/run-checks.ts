import { type Finding, type FindingId, findingKinds } from "./findings.ts";

/** Where a check writes down what it looked at and what it found. */
export interface Report {
  /** One line for people: what was looked at, and what it is. Never a secret. */
  checked(line: string): void;
  found(id: FindingId, problem: string, fix: string): void;
  /** Aborted when the check has taken too long. */
  readonly signal: AbortSignal;
}

/** Looks at one thing and changes nothing. What it throws is a finding too. */
export type DoctorCheck = (report: Report) => Promise<void> | void;

export interface Diagnosis {
  readonly checked: readonly { readonly area: string; readonly text: string }[];
  readonly findings: readonly Finding[];
}

/** Longer than any time-out of the checks' own. */
const defaultTimeoutMs = 10_000;

/**
 * Runs all checks at the same time, each by its name for people (`postgres`). False: there is nothing to check. One that
 * takes too long is a finding; what it has reported by then counts.
 */
export async function runChecks(
  checks: Readonly<Record<string, DoctorCheck | false>>,
  timeoutMs = defaultTimeoutMs,
): Promise<Diagnosis> {
  const running = Object.entries(checks).flatMap(([area, run]) => (run ? [runCheck(area, run, timeoutMs)] : []));
  const results = await Promise.all(running);
  return {
    checked: results.flatMap(({ checked }) => checked),
    findings: results.flatMap(({ findings }) => findings),
  };
}

async function runCheck(area: string, run: DoctorCheck, timeoutMs: number): Promise<Diagnosis> {
  const result = { checked: [] as { area: string; text: string }[], findings: [] as Finding[] };
  const timeout = new AbortController();
  const addFinding = (id: FindingId, problem: string, fix: string) => {
    const { severity, why } = findingKinds[id];
    result.findings.push({ id, severity, area, problem, why, fix });
  };
  // Nothing is added to a result that was already given away.
  const report: Report = {
    checked: (text) => void (timeout.signal.aborted || result.checked.push({ area, text })),
    found: (id, problem, fix) => void (timeout.signal.aborted || addFinding(id, problem, fix)),
    signal: timeout.signal,
  };
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<"late">((resolve) => {
    timer = setTimeout(() => resolve("late"), timeoutMs);
  });
  try {
    if ((await Promise.race([run(report), late])) === "late") {
      timeout.abort();
      addFinding(
        "check-timed-out",
        `the check of ${area} has not ended after ${timeoutMs / 1000} s`,
        `Run doctor again; if it hangs again, look at what the check of ${area} talks to: its machine, the network, the disk.`,
      );
    }
  } catch (error) {
    const { message, code } = error as NodeJS.ErrnoException;
    addFinding(
      "check-failed",
      `the check of ${area} failed: ${code ?? message}`,
      "Run doctor again as the user that runs the service; if it fails again, please report this line.",
    );
  } finally {
    clearTimeout(timer);
  }
  return result;
}
