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
import { checkDataFolder, checkDisk } from "./check-data-folder.ts";
import { checkFiles, type PrivateFile } from "./check-files.ts";
import { checkOpenFiles } from "./check-open-files.ts";
import { checkPorts } from "./check-ports.ts";
import { type Diagnosis, type Report, runChecks } from "./run-checks.ts";

/** Checks what a start with this environment would use. If some settings are wrong, what the others name is checked. */
export function checkConfiguration(ownEnvironment: Environment, clock: Clock): Promise<Diagnosis> {
  const read = readWhatIsValid(ownEnvironment);
  const { settings, dataDir } = read;
  const certificates = portCertificatesOf(settings);
  const { connectionsMax, databaseUrl, databaseConnectionsMax = 1, usageLanes = 1, role } = settings;
  const { storeMustExist = false, coordinators = [], internalSecrets = [], internalCa: ca, internalTls } = settings;
  const redis = redisAccessOf(settings);
  // Engines are loaded only if used: that takes longer than to ask them.
  return runChecks({
    settings: (report) => checkSettings(read, new Set(certificates.flatMap(tlsProblemsOf)), report),
    files: (report) => checkFiles(privateFilesOf(read.environment, settings, certificates), report),
    // A coordinator's public port has probes only.
    "open files":
      role !== "coordinator" && connectionsMax !== undefined && ((report) => checkOpenFiles(connectionsMax, report)),
    ports: (report) => checkPorts(settings, () => !dataDir?.isEmbedded || isDataFolderInUse(dataDir.path), report),
    "data folder": dataDir !== undefined && ((report) => checkDataFolder(dataDir, settings, report)),
    disk: dataDir !== undefined && ((report) => checkDisk(dataDir, report)),
    postgres:
      databaseUrl !== undefined &&
      role !== "edge" &&
      (async (report) => {
        const { checkPostgres } = await import("./check-postgres.ts");
        const countsAlone = role === "all" && !(variables.redisUrl.name in describeSettings(read.environment));
        const facts = { databaseConnectionsMax, usageLanes, storeMustExist, countsAlone };
        await checkPostgres(databaseUrl, facts, report);
      }),
    redis: redis !== undefined && (async (report) => (await import("./check-redis.ts")).checkRedis(redis, report)),
    coordinators:
      role === "edge" &&
      coordinators.length > 0 &&
      (async (report) => {
        const { checkCoordinators } = await import("./check-coordinators.ts");
        await checkCoordinators(coordinators, { secret: internalSecrets[0], ca, ...internalTls }, clock, report);
      }),
    certificates: certificates.length > 0 && ((report) => checkCertificates(certificates, clock, report)),
  });
}

/** Settings by the rules of a start. `reported` are problems that another check reports. */
function checkSettings(
  { problems, warnings, environment }: ReadSettings,
  reported: ReadonlySet<string>,
  { checked, found }: Report,
): void {
  const set = Object.keys(describeSettings(environment));
  checked(set.length === 0 ? "all have their defaults" : `set: ${set.join(", ")}`);
  for (const problem of problems) {
    if (reported.has(problem)) continue;
    const [name = ""] = /^[A-Z][A-Z_]+/.exec(problem) ?? [];
    found("settings-invalid", problem, `Set ${name} as it says, or unset it; docs/configuration.md explains it.`);
  }
  for (const warning of warnings) {
    const [name = ""] = /^[A-Z][A-Z_0-9]+/.exec(warning) ?? [];
    found("settings-unknown", warning, `unset ${name}, or correct its name by docs/configuration.md.`);
  }
}

type ReadSettings = ReturnType<typeof readWhatIsValid>;

/** The settings that are valid, and what is wrong with the others. Without `dataDir` it is not known where the data is. */
function readWhatIsValid(ownEnvironment: Environment) {
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
