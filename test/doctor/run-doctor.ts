import { expect } from "vitest";
import { limitConcurrency } from "../../src/store/sql/limit-concurrency.ts";
import { runLatchkey } from "../support/latchkey-process.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { testInternalSecret, testRootKey } from "../support/test-root-key.ts";

/** In every address with a password. No output may have it. */
export const password = "p4ssw0rd-of-nobody";

export interface DoctorAnswer {
  readonly code: number | null;
  /** In the order in which they were found. */
  readonly ids: readonly string[];
  readonly findings: readonly Record<"id" | "severity" | "area" | "problem" | "why" | "fix", string>[];
  readonly checked: readonly { readonly area: string; readonly text: string }[];
}

/** A data folder and ports of its own, and no more connections than any machine has files for. */
export function healthyEnvironment(): Record<string, string> {
  const ports = { PORT: "0", LATCHKEY_INTERNAL_PORT: "0" };
  return { LATCHKEY_DATA_DIR: tempFolder(), LATCHKEY_CONNECTIONS_MAX: "200", ...ports };
}

/** More at once would keep each other from the processors until their time-outs. */
const inTurn = limitConcurrency(3, 1000);

/** Runs the built command with `--json`. Where the machine was too busy for a check to end, it says to run it again. */
export async function runDoctor(
  environment: Record<string, string>,
  args: readonly string[] = [],
  tries = 5,
): Promise<DoctorAnswer> {
  const answer = readAnswer(await inTurn(() => runLatchkey(["doctor", "--json", ...args], environment)));
  return answer.ids.includes("check-timed-out") && tries > 1 ? runDoctor(environment, args, tries - 1) : answer;
}

export function readAnswer({ code, stdout, stderr }: { code: number | null; stdout: string; stderr: string }) {
  expect(stderr).toBe("");
  for (const secret of [password, testInternalSecret, testRootKey]) expect(stdout).not.toContain(secret);
  const { findings, checked, worst } = JSON.parse(stdout);
  const ids = findings.map(({ id }: { id: string }) => id);
  expect(code).toBe({ error: 1, warning: 3, note: 0, null: 0 }[String(worst)]);
  return { code, ids, findings, checked } as DoctorAnswer;
}

/** A fault that is planted, and what doctor must say. */
export interface PlantedFault {
  readonly fault: string;
  /** Plants it and answers the environment; what it does not name is healthy. */
  readonly plant: () => Promise<Record<string, string>> | Record<string, string>;
  readonly args?: readonly string[];
  /** The only finding. */
  readonly id: string;
  readonly fix: RegExp | string;
  /** 1 for an error, 3 for a warning, 0 for a note. */
  readonly code: 0 | 1 | 3;
}

/** Doctor finds the fault, names the fix, and finds nothing else. */
export async function expectFound({ plant, args, id, fix, code }: PlantedFault): Promise<void> {
  const answer = await runDoctor({ ...healthyEnvironment(), ...(await plant()) }, args);
  expect(answer).toMatchObject({ ids: [id], code });
  expect(answer.findings[0]?.fix).toMatch(fix);
}
