import { nearestName } from "../domain/suggest.ts";
import { conflictsOf } from "./setting-conflicts.ts";
import { parseSettingsFile } from "./settings-file.ts";
import { readTlsIdentity, TlsFilesError, type TlsIdentity, type TlsPort, tlsPorts } from "./tls-files.ts";
import { type SettingValues, type Variable, variables } from "./variables.ts";

/** All settings, with the files that they name: what a process runs by. */
export interface Settings extends SettingValues {
  /** The identity of the public port; absent: cleartext. */
  readonly tls: TlsIdentity | undefined;
  readonly internalTls: TlsIdentity | undefined;
}

/** For the commands that call a service: docs/cli.md. A shell in which they are set may also start one. */
const namesOfClient = ["LATCHKEY_URL", "LATCHKEY_PROFILE"];

/** Everything that is wrong with the settings. */
export class SettingsError extends Error {
  override readonly name = "SettingsError";
  readonly problems: readonly string[];
  /** The data folder, if it is used and its own setting was valid: the folder may have another problem. */
  readonly dataDir: string | undefined;
  /** The settings that were valid by themselves. */
  readonly valid: Partial<Settings>;
  /** As `ReadSettings` has them. A misspelt setting is often why another one is wrong. */
  readonly warnings: readonly string[];

  constructor(problems: readonly string[], known: Partial<Pick<SettingsError, "dataDir" | "valid" | "warnings">> = {}) {
    super(problems.join("\n"));
    this.problems = problems;
    this.dataDir = known.dataDir;
    this.valid = known.valid ?? {};
    this.warnings = known.warnings ?? [];
  }
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** The settings that differ from their defaults, by the names that operators know. Of secrets only that they are set. */
export function describeSettings(environment: Environment): Record<string, string> {
  const described = Object.values(variables).map((variable: Variable<unknown>): [string, string] => {
    const { name, fallback = "", secret } = variable;
    if (!secret) return [name, environment[name] === fallback ? "" : (environment[name] ?? "")];
    return [name, environment[`${name}_FILE`] ? "set, by a file" : isSet(variable, environment) ? "set" : ""];
  });
  return Object.fromEntries(described.filter(([, text]) => text !== ""));
}

export interface ReadSettings {
  readonly settings: Settings;
  /** About settings that are unusual but harmless. */
  readonly warnings: readonly string[];
  /** What they were read from: the process's own environment, with what the file of settings adds. */
  readonly environment: Environment;
}

/** Throws `SettingsError`. */
export function readSettings(ownEnvironment: Environment, readFile: (path: string) => string): ReadSettings {
  const environment = withSettingsFile(ownEnvironment, readFile);
  const problems: string[] = [];
  const parsed = Object.entries(variables).map(([setting, { name }]) => {
    try {
      return [setting, readSetting(setting as keyof SettingValues, environment, readFile)];
    } catch (error) {
      problems.push(`${name} ${(error as Error).message}`);
      return [setting, undefined];
    }
  });
  const values = Object.fromEntries(parsed) as SettingValues;
  const identityOf = (port: TlsPort) => {
    try {
      const { cert, key } = tlsPorts[port];
      return readTlsIdentity({ port, certFile: values[cert], keyFile: values[key] }, readFile);
    } catch (error) {
      if (!(error instanceof TlsFilesError)) throw error;
      problems.push(...error.problems);
      return undefined;
    }
  };
  const identities = { tls: identityOf("public"), internalTls: identityOf("internal") };
  const settings: Settings = Object.freeze({ ...values, ...identities });
  problems.push(...conflictsOf(settings, (setting) => isSet(variables[setting], environment)));
  const usesFolder = !isSet(variables.databaseUrl, environment) && settings.role !== "edge";
  const warnings = warningsAbout(environment);
  const dataDir = usesFolder ? settings.dataDir : undefined;
  if (problems.length > 0) throw new SettingsError(problems, { dataDir, valid: settings, warnings });
  return { settings, warnings, environment };
}

/** One setting alone. Throws an Error whose message completes "<NAME> …". */
export function readSetting<Setting extends keyof SettingValues>(
  setting: Setting,
  environment: Environment,
  readFile: (path: string) => string,
): SettingValues[Setting] {
  const variable: Variable<unknown> = variables[setting];
  return variable.parse(textOf(variable, environment, readFile), variable.name) as SettingValues[Setting];
}

/** The environment, with what `LATCHKEY_SETTINGS_FILE` adds to it. Throws `SettingsError`. */
export function withSettingsFile(environment: Environment, readFile: (path: string) => string): Environment {
  const path = environment[variables.settingsFile.name];
  if (!path) return environment;
  const names = new Set(knownNames());
  names.delete(variables.settingsFile.name);
  const text = textOfFile(path, environment, readFile);
  const { values, problems } = parseSettingsFile(text, (name) => names.has(name), suggestSetting);
  if (problems.length > 0) throw new SettingsError(problems, { warnings: warningsAbout(environment) });
  // A secret of the environment also replaces the file that is named for it, and the other way round.
  const isFree = (name: string) => !isSet({ name: name.replace(/_FILE$/, "") }, environment);
  // An empty variable is one that is not set.
  const own = Object.entries(environment).filter(([, text]) => text !== "");
  return Object.fromEntries([...Object.entries(values).filter(([name]) => isFree(name)), ...own]);
}

function textOfFile(path: string, environment: Environment, readFile: (path: string) => string): string {
  try {
    return readFile(path);
  } catch (error) {
    const { code = "error" } = error as NodeJS.ErrnoException;
    const problem = `LATCHKEY_SETTINGS_FILE names a file that cannot be read: ${code}`;
    throw new SettingsError([problem], { warnings: warningsAbout(environment) });
  }
}

/** The files that settings are read from, beside the file of settings itself. */
export function settingFiles(environment: Environment): string[] {
  const named = Object.values(variables).map(
    ({ name, secret }: Variable<unknown>) => secret && environment[`${name}_FILE`],
  );
  const ofPorts = Object.values(tlsPorts).flatMap(({ cert, key }) => [cert, key]);
  const certificates = ofPorts.map((setting) => environment[variables[setting].name]);
  return [...named, ...certificates].filter((path): path is string => Boolean(path));
}

function textOf(variable: Variable<unknown>, environment: Environment, readFile: (path: string) => string): string {
  const text = environment[variable.name];
  const path = variable.secret && environment[`${variable.name}_FILE`];
  if (!path) return text || (variable.fallback ?? "");
  if (text) throw new Error(`and ${variable.name}_FILE are both set: set one of them`);
  let content: string;
  try {
    content = readFile(path).trim();
  } catch (error) {
    throw new Error(`cannot be read from ${variable.name}_FILE: ${(error as NodeJS.ErrnoException).code ?? "error"}`);
  }
  // An empty secret is an error: starting without one would go unnoticed.
  if (content === "") throw new Error(`cannot be read from ${variable.name}_FILE: the file is empty`);
  return content;
}

function isSet({ name }: Pick<Variable<unknown>, "name">, environment: Environment): boolean {
  return Boolean(environment[name] || environment[`${name}_FILE`]);
}

function warningsAbout(environment: Environment): readonly string[] {
  const known = new Set([...namesOfClient, ...knownNames()]);
  const unknown = Object.keys(environment).filter((name) => name.startsWith("LATCHKEY_") && !known.has(name));
  return unknown.map((name) => `${name} is not a setting of Latchkey${suggestSetting(name)}`);
}

/** Without the prefix, which all of them share and which some lack: `LATCHKEY_PORT` is meant for `PORT`. */
function suggestSetting(name: string): string {
  const shortOf = (full: string) => full.replace(/^LATCHKEY_/, "");
  const byShortName = new Map(knownNames().map((known) => [shortOf(known), known]));
  const meant = byShortName.get(nearestName(shortOf(name), [...byShortName.keys()]) ?? "");
  return meant === undefined ? "" : `; did you mean ${meant}?`;
}

function knownNames(): string[] {
  return Object.values(variables).flatMap(({ name, secret }: Variable<unknown>) =>
    secret ? [name, `${name}_FILE`] : [name],
  );
}
