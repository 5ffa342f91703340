import { type Clock, systemClock } from "../../src/ambient/clock.ts";
import { createLog } from "../../src/ambient/log.ts";
import { createSystemRandom } from "../../src/ambient/random.ts";
import { readSettings, type Settings } from "../../src/config/settings.ts";
import { Secret } from "../../src/domain/secret.ts";
import { startServer } from "../../src/server/start.ts";
import { tempFolder } from "./temp-folder.ts";
import { atTestEnd } from "./test-end.ts";
import { testRootKey } from "./test-root-key.ts";

export interface TestServer {
  readonly baseUrl: string;
  readonly port: number;
  readonly internalPort: number;
  readonly rootKey: string;
  /** Everything logged so far, as printed, at debug level. */
  readonly logLines: string[];
  /** As the server's own. Already resolved unless it was not to be waited for. */
  readonly ready: Promise<unknown>;
  stop(): Promise<void>;
}

/** The whole service in this process, on ports and a data folder of its own; stopped with the test. */
export async function startTestServer(
  options: {
    settings?: Partial<Settings>;
    clock?: Clock;
    /** The ledger uses the database's own clock instead of this server's. */
    ledgerKeepsItsClock?: boolean;
    /** The ledger's clock, where it is neither this server's nor the database's own. */
    ledgerClock?: Pick<Clock, "nowMs">;
    onFatal?: (cause: unknown) => void;
    waitUntilReady?: boolean;
  } = {},
): Promise<TestServer> {
  const logLines: string[] = [];
  const settings: Settings = {
    ...readSettings({}, () => "").settings,
    port: 0,
    dataDir: options.settings?.dataDir ?? tempFolder(),
    // However busy the machine is; tests of the deadline set it to what users get.
    usageTimeoutMs: 20_000,
    windowsMax: 10_000,
    freeWindowsMax: 10_000,
    rootKeys: options.settings?.role === "edge" ? [] : [new Secret(testRootKey)],
    internalPort: 0,
    drainMs: 0,
    logLevel: "debug",
    ...options.settings,
  };
  const server = await startServer({
    settings,
    clock: options.clock ?? systemClock,
    ...(options.clock && !options.ledgerKeepsItsClock && { ledgerClock: options.clock }),
    ...(options.ledgerClock && { ledgerClock: options.ledgerClock }),
    random: createSystemRandom(),
    log: createLog("debug", (line) => logLines.push(line)),
    onFatal:
      options.onFatal ??
      ((cause) => {
        throw cause;
      }),
  });
  const { port, internalPort, ready } = server;
  // A test that does not wait may ignore the rejection.
  ready.catch(() => {});
  if (options.waitUntilReady ?? true) await ready;
  let stopped: Promise<void> | undefined;
  const stop = () => {
    stopped ??= server.stop();
    return stopped;
  };
  atTestEnd(stop);
  return { baseUrl: `http://127.0.0.1:${port}`, port, internalPort, rootKey: testRootKey, logLines, ready, stop };
}
