import { onTestFinished } from "vitest";
import { systemClock } from "../../src/ambient/clock.ts";
import { createLog } from "../../src/ambient/log.ts";
import { createMetrics } from "../../src/ambient/metrics.ts";
import { createSystemRandom } from "../../src/ambient/random.ts";
import { type InternalAccess, startInternalListener } from "../../src/server/internal-listener.ts";

/** The internal port without services, on loopback; closed with the test. */
export async function startEmptyListener(access: InternalAccess) {
  const metrics = createMetrics();
  const listener = await startInternalListener({
    clock: systemClock,
    random: createSystemRandom(),
    log: createLog("error", () => {}),
    metrics,
    host: "127.0.0.1",
    port: 0,
    access,
    services: new Map(),
  });
  onTestFinished(() => listener.close());
  return { listener, metrics };
}
