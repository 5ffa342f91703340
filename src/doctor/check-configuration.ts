import { readFileSync } from "node:fs";
import type { Clock } from "../ambient/clock.ts";
import {
  describeSettings,
  type Environment,
  readSettings,
  type Settings,
  SettingsError,
  withSettingsFile,
} from "../config/settings.ts";
import { parseSettingsFile } from "../config/settings-file.ts";
import { variables } from "../config/variables.ts";
import { redisAccessOf } from "../server/redis-access.ts";
import { rootKeyFileOf } from "../server/write-root-key.ts";
import { databaseFileIn, isDataFolderInUse } from "../store/sqlite/data-folder.ts";
import { checkCertificates, type PortCertificate, portCertificatesOf, tlsProblemsOf } from "./check-certificates.ts";
import { checkDataFolder } from "./check-data-folder.ts";
import { checkDisk } from "./check-disk.ts";
import { checkFiles, type PrivateFile } from "./check-files.ts";
import { checkOpenFiles } from "./check-open-files.ts";
import { checkPorts } from "./check-ports.ts";
import { checkSettings } from "./check-settings.ts";
import { type Check, type Diagnosis, runChecks } from "./run-checks.ts";

/** Checks what a start with this environment would use. If some settings are wrong, what the others name is checked. */
export function checkConfiguration(ownEnvironment: Environment, clock: Clock): Promise<Diagnosis> {
  const { settings, problems, warnings, dataDir, environment } = read(ownEnvironment);
  const certificates = portCertificatesOf(settings);
  const ofCertificates = new Set(certificates.flatMap(tlsProblemsOf));
  const set = Object.keys(describeSettings(environment));
  const { connectionsMax, databaseUrl, databaseConnectionsMax = 1, usageLanes = 1, role } = settings;
  const { storeMustExist = false } = settings;
  const redis = redisAccessOf(settings);
  const { coordinators = [], internalSecrets = [], internalCa: ca, internalTls } = settings;

  const checks: (Check | false | undefined)[] = [
    checkSettings({ problems, warnings, set }, ofCertificates),
    checkFiles(privateFilesOf(environment, settings, certificates)),
    // A coordinator's public port has probes only.
    role !== "coordinator" && connectionsMax !== undefined && checkOpenFiles({ connectionsMax }),
    checkPorts(settings, () => !dataDir?.isEmbedded || isDataFolderInUse(dataDir.path)),
    dataDir !== undefined && checkDataFolder(dataDir.path, dataDir.isEmbedded, storeMustExist),
    dataDir !== undefined && checkDisk(dataDir.path, dataDir.isEmbedded),
    databaseUrl &&
      role !== "edge" &&
      loaded("postgres", async () => {
        const { checkPostgres } = await import("./check-postgres.ts");
        const countsAlone = role === "all" && !set.includes(variables.redisUrl.name);
        return checkPostgres(databaseUrl, { databaseConnectionsMax, usageLanes, storeMustExist, countsAlone });
      }),
    redis &&
      loaded("redis", async () => {
        const { checkRedis } = await import("./check-redis.ts");
        return checkRedis(redis);
      }),
    role === "edge" &&
      coordinators.length > 0 &&
      loaded("coordinators", async () => {
        const { checkCoordinators } = await import("./check-coordinators.ts");
        return checkCoordinators(coordinators, { secret: internalSecrets[0], ca, ...internalTls }, clock);
      }),
    certificates.length > 0 && checkCertificates(certificates, clock),
  ];
  return runChecks(checks.filter((check) => check !== undefined && check !== false));
}

/** Loaded only if used: an engine takes longer to load than to ask. */
function loaded(area: string, load: () => Promise<Check>): Check {
  return { area, run: async (report) => (await load()).run(report) };
}

interface ReadSettings {
  /** Those that are valid. */
  readonly settings: Partial<Settings>;
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
  /** With what the file of settings adds. */
  readonly environment: Environment;
  /** Undefined: it is not known whether the store is in it. */
  readonly dataDir: { readonly path: string; readonly isEmbedded: boolean } | undefined;
}

function read(ownEnvironment: Environment): ReadSettings {
  const readFile = (path: string) => readFileSync(path, "utf8");
  let environment = ownEnvironment;
  try {
    environment = withSettingsFile(ownEnvironment, readFile);
    const { settings, warnings } = readSettings(environment, readFile);
    const isEmbedded = settings.databaseUrl === undefined && settings.role !== "edge";
    return { settings, problems: [], warnings, dataDir: { path: settings.dataDir, isEmbedded }, environment };
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    const dataDir = error.dataDir === undefined ? undefined : { path: error.dataDir, isEmbedded: true };
    const { valid, problems, warnings } = error;
    return { settings: valid, problems, warnings, dataDir, environment };
  }
}

/** Certificates may come from files like secrets do, and are none. */
const notSecret: readonly string[] = [variables.redisCa, variables.internalCa, variables.internalClientCa].map(
  ({ name }) => name,
);
const secretNames = Object.values(variables).flatMap(({ name, secret }: { name: string; secret?: true }) =>
  secret && !notSecret.includes(name) ? [name] : [],
);

function privateFilesOf(
  environment: Environment,
  settings: Partial<Settings>,
  certificates: readonly PortCertificate[],
): readonly PrivateFile[] {
  const secrets = secretNames.flatMap((name) => {
    const path = environment[`${name}_FILE`];
    return path ? [{ what: `the file of ${name}_FILE`, path }] : [];
  });
  const { name } = variables.settingsFile;
  const path = environment[name];
  const settingsFile = path && hasSecrets(path) ? [{ what: `the file of ${name}, which has secrets,`, path }] : [];
  const keys = certificates.map(({ port, keyFile }) => ({
    what: `the private key of the ${port} port`,
    path: keyFile,
  }));
  return [...settingsFile, ...secrets, ...keys, ...dataFilesOf(settings)];
}

/** Whether the file of settings has a secret itself. One that names the files of secrets has none. */
function hasSecrets(settingsFile: string): boolean {
  try {
    const { values } = parseSettingsFile(readFileSync(settingsFile, "utf8"), (name) => secretNames.includes(name));
    return Object.values(values).some((value) => value !== "");
  } catch {
    // A file that cannot be read is a wrong setting, and reported as one.
    return false;
  }
}

function dataFilesOf({ dataDir, databaseUrl }: Partial<Settings>): readonly PrivateFile[] {
  if (dataDir === undefined) return [];
  const database = databaseFileIn(dataDir);
  return [
    { what: "the data folder", path: dataDir },
    { what: "the data file", path: database },
    { what: "the data file's log", path: `${database}-wal` },
    { what: "the root key", path: rootKeyFileOf({ dataDir, databaseUrl }) },
  ];
}
