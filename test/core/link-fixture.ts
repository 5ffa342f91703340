import { expect, onTestFinished, vi } from "vitest";
import { type Clock, systemClock } from "../../src/ambient/clock.ts";
import { createLog } from "../../src/ambient/log.ts";
import { CoordinatorLink } from "../../src/core/remote/coordinator-link.ts";
import { fromWirePermits, toWireAsk } from "../../src/core/wire.ts";
import type { PermitAsk } from "../../src/domain/permit-window.ts";
import type { Secret } from "../../src/domain/secret.ts";
import type { PermitAnswer } from "../../src/ratelimit/permit-channel.ts";
import { settledWith } from "../ratelimit/strict/asks.ts";
import { ScriptedCoordinator } from "./scripted-coordinator.ts";

/** A link to a scripted coordinator. */
export async function setUpLink(
  options: { secret?: Secret; port?: (coordinator: ScriptedCoordinator) => Promise<number>; clock?: Clock } = {},
) {
  const coordinator = await ScriptedCoordinator.start();
  const port = (await options.port?.(coordinator)) ?? coordinator.port;
  const recalls: string[] = [];
  const logLines: string[] = [];
  const link = new CoordinatorLink({
    address: `127.0.0.1:${port}`,
    credentials: () => ({ secret: options.secret }),
    onRecall: (subject) => recalls.push(subject),
    clock: options.clock ?? systemClock,
    log: createLog("info", (line) => logLines.push(line)),
  });
  onTestFinished(() => link.close());
  await vi.waitFor(() => expect(link.isUp).toBe(true));
  return { coordinator, link, recalls, logLines };
}

const { outcome: _, ...grant } = settledWith({});
export const granting = (id: number, granted: number) => ({
  id,
  answer: { case: "permits" as const, value: { ...grant, granted } },
});

/** Asks for permits over a link. Rejects as `call` does. */
export async function exchange(
  link: CoordinatorLink,
  subject: string,
  ask: PermitAsk,
  onOverdue?: () => void,
): Promise<PermitAnswer> {
  return fromWirePermits(await link.call(toWireAsk(subject, ask), onOverdue && { onOverdue }));
}
