import { expect, onTestFinished, vi } from "vitest";
import { systemClock } from "../../../src/ambient/clock.ts";
import { createLog } from "../../../src/ambient/log.ts";
import type { Secret } from "../../../src/domain/secret.ts";
import { CoordinatorLink } from "../../../src/ratelimit/strict/coordinator-link.ts";
import { settledWith } from "./asks.ts";
import { ScriptedCoordinator } from "./scripted-coordinator.ts";

/** A link to a scripted coordinator. */
export async function setUpLink(
  options: { secret?: Secret; port?: (coordinator: ScriptedCoordinator) => Promise<number> } = {},
) {
  const coordinator = await ScriptedCoordinator.start();
  const port = (await options.port?.(coordinator)) ?? coordinator.port;
  const recalls: string[] = [];
  const logLines: string[] = [];
  const link = new CoordinatorLink({
    address: `127.0.0.1:${port}`,
    secret: options.secret,
    onRecall: (keyId) => recalls.push(keyId),
    clock: systemClock,
    log: createLog("info", (line) => logLines.push(line)),
  });
  onTestFinished(() => link.close());
  await vi.waitFor(() => expect(link.isUp).toBe(true));
  return { coordinator, link, recalls, logLines };
}

const { outcome: _, ...grant } = settledWith({});
export const granting = (id: number, granted: number) => ({
  id,
  outcome: { case: "grant" as const, value: { ...grant, granted } },
});
