import { setTimeout as delay } from "node:timers/promises";
import { expect } from "vitest";
import { type incidentPages, readIncidentPage } from "../support/incident-pages.ts";
import { type LatchkeyProcess, runLatchkey } from "../support/latchkey-process.ts";
import { atTestEnd } from "../support/test-end.ts";

/** What somebody on call finds who types the first line of this page, on the machine of this service. */
export async function followPage(
  heading: (typeof incidentPages)[number],
  environment: Record<string, string>,
  latchkey?: LatchkeyProcess,
) {
  const { command, rows } = readIncidentPage(heading);
  const [program, ...words] = command.split(" ");
  expect(program).toBe("latchkey");
  const args = words.map((word) => (word === "http://127.0.0.1:8080" ? (latchkey?.baseUrl ?? word) : word));
  const port = latchkey && { LATCHKEY_INTERNAL_PORT: new URL(latchkey.internalUrl).port };
  const { stdout } = await runLatchkey([...args, "--json"], { ...environment, ...port });
  const found = (JSON.parse(stdout) as { findings: { id: string; fix: string }[] }).findings;
  const causes = rows.filter(({ ids }) => ids.some((id) => found.some((finding) => finding.id === id)));
  return { ids: found.map(({ id }) => id), causes: causes.map(({ cause }) => cause).join("\n") };
}

/** Goes on in the background until the test ends. */
export function repeat(act: () => Promise<unknown>): void {
  let isOver = false;
  const running = (async () => {
    while (!isOver) {
      await act().catch(() => {});
      await delay(20);
    }
  })();
  atTestEnd(async () => {
    isOver = true;
    await running;
  });
}
