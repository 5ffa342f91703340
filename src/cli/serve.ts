import { closeSync, openSync } from "node:fs";
import { version } from "../../gen/version.ts";
import { systemClock } from "../ambient/clock.ts";
import type { Log } from "../ambient/log.ts";
import { createProcessLog, ignoreLostReader } from "../ambient/log-output.ts";
import { createSystemRandom } from "../ambient/random.ts";
import { describeSettings } from "../config/settings.ts";
import type { RunningServer } from "../server/running-server.ts";
import { startServer } from "../server/start.ts";
import { banner } from "./banner.ts";
import { exitWithProblems, readSettingsOrExit } from "./start-problems.ts";

/** Serves until a signal arrives: the first signal shuts down gracefully, a second one immediately. */
export async function serve(role: string | undefined): Promise<void> {
  const forced = role ? { LATCHKEY_ROLE: role } : {};
  const { settings, warnings, environment } = readSettingsOrExit("latchkey cannot start", forced);
  const log = createProcessLog(settings);
  ignoreLostReader(process.stdout);
  for (const warning of warnings) log.warn(warning);

  const onFatal = (cause: unknown) => {
    log.error("the process cannot go on", cause);
    process.exit(1);
  };
  process.on("uncaughtException", onFatal);
  process.on("unhandledRejection", onFatal);

  const ambient = { clock: systemClock, random: createSystemRandom(), log };
  const ownEnvironment = { ...process.env, ...forced };
  const server = await startServer({ ...ambient, settings, environment: ownEnvironment, onFatal }).catch(
    (error: unknown) => exitWithProblems("latchkey cannot start", error),
  );
  let stopping = false;
  const stop = (signal: NodeJS.Signals) => {
    if (stopping) process.exit(1);
    stopping = true;
    log.info("stopping", { signal });
    server.stop().then(() => {
      log.info("stopped");
      process.exit(0);
    }, onFatal);
  };
  process.on("SIGTERM", stop);
  process.on("SIGINT", stop);
  // With a terminal, this signal says that it was closed: then the process ends, as programs do.
  if (!hasTerminal()) process.on("SIGHUP", () => void reload(server, log));

  const generatedRootKey = await server.ready.catch((error: unknown) =>
    stopping ? undefined : exitWithProblems("latchkey cannot start", error),
  );
  if (stopping) return;
  // Printed last: a script that reads it may send a signal immediately.
  process.stdout.write(banner(settings, server, generatedRootKey, process.stdout.isTTY));
  log.info("serving", { version, port: server.port, internalPort: server.internalPort });
  const changed = describeSettings(environment);
  if (Object.keys(changed).length > 0) log.info("settings that differ from their defaults", changed);
}

async function reload(server: RunningServer, log: Log): Promise<void> {
  if (!(await server.reload())) log.info("SIGHUP: nothing was taken over");
}

/** Whether this process has a controlling terminal. */
function hasTerminal(): boolean {
  try {
    closeSync(openSync("/dev/tty", "r"));
    return true;
  } catch {
    return false;
  }
}
