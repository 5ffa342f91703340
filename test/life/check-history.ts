import { checkBalances } from "./check-balances.ts";
import { checkEvents } from "./check-events.ts";
import { checkFields } from "./check-fields.ts";
import { checkLists } from "./check-lists.ts";
import { checkVersions } from "./check-versions.ts";
import { checkWindows } from "./check-windows.ts";
import { type Problem, print, recordsOf } from "./key-record.ts";
import type { Call, History } from "./operations.ts";

/** Everything in a history that a correct service cannot have answered. Needs nothing but the history. */
export function checkHistory(history: History): Problem[] {
  const records = recordsOf(history);
  const ofKeys = records.flatMap((record) => [
    ...checkBalances(record),
    ...checkVersions(record),
    ...checkFields(record, history),
    ...checkWindows(record, history),
    ...checkEvents(record),
  ]);
  return [...ofKeys, ...checkLists(records, history)];
}

/** The first problems, each with the last calls that show it: enough to see what went wrong, and no more. */
export function explain(problems: readonly Problem[], history: History): string[] {
  const firstMs = Math.min(...history.calls.map(({ startMs }) => startMs));
  return problems.slice(0, 3).map(({ rule, keyId, text, calls }) => {
    const shown = [...calls].sort((a, b) => a.startMs - b.startMs).slice(-24);
    const lines = shown.map((call) => `    ${describe(call, firstMs)}`);
    return [`${rule} of ${keyId}: ${text}`, ...lines].join("\n");
  });
}

function describe({ number, replica, operation, answer, startMs, endMs }: Call, firstMs: number): string {
  const { kind, ...rest } = operation;
  const asked = print({ ...rest, ...("secret" in rest && { secret: `…${rest.secret.slice(-4)}` }) });
  const answered = answer.status === "done" ? print(answer.body) : answer.status;
  const times = `${(startMs - firstMs).toFixed(1)}–${(endMs - firstMs).toFixed(1)} ms`;
  return `#${number} replica ${replica} ${times} ${kind} ${asked} → ${answered}`;
}
