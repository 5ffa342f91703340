import { expect } from "vitest";
import { checkHistory, explain } from "./check-history.ts";
import type { Call } from "./operations.ts";
import type { StartedService } from "./start-service.ts";

const callers = 16;

/** Random operations by 16 callers at once. Answers how often each answer was given, by its method. */
export async function expectExplainedRun(
  started: StartedService,
  { seed, operations }: { seed: number; operations: number },
): Promise<ReadonlyMap<string, number>> {
  const { service } = started;
  const recorded = await service.run({ seed, callers, operations });
  const calls = started.frontsAreUnknown ? recorded.map((call) => ({ ...call, replica: call.number })) : recorded;
  const history = { ...started, calls, events: await service.listEvents() };
  // The seed chooses the operations; what the machine made of them is in the lines.
  expect({ seed, problems: explain(checkHistory(history), history) }).toEqual({ seed, problems: [] });
  // A machine that stands still has some. With more of them this would show little.
  expect(service.unexpected.length, service.unexpected[0]).toBeLessThan(operations / 100);
  return timesOf(calls);
}

function timesOf(calls: readonly Call[]): Map<string, number> {
  const times = new Map<string, number>();
  for (const { operation, answer } of calls) {
    const code = answer.status === "done" && "code" in answer.body ? answer.body.code : answer.status;
    const name = `${operation.kind} ${code}`;
    times.set(name, (times.get(name) ?? 0) + 1);
  }
  return times;
}
