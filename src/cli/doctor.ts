import { readFileSync } from "node:fs";
import { systemClock } from "../ambient/clock.ts";
import { hostOf, isLoopback, localUrl } from "../config/hosts.ts";
import { readSetting, withSettingsFile } from "../config/settings.ts";
import { checkConfiguration } from "../doctor/check-configuration.ts";
import { checkService, type ServiceAddresses } from "../doctor/check-service.ts";
import { type Finding, type Severity, severities, worstOf } from "../doctor/findings.ts";
import type { Diagnosis } from "../doctor/run-checks.ts";
import { printable } from "./commands/screen.ts";
import type { FlagValues } from "./parse-arguments.ts";

export const doctorUsage = `Usage: latchkey doctor                check the settings in the environment and what they name; changes nothing
         --role ROLE                  all (default), edge or coordinator, as serve takes it
       latchkey doctor --url URL      check a service that runs, by its public port
         --internal-url URL           its internal port, for its metrics; the secret comes from LATCHKEY_INTERNAL_SECRET
       both: --json                   for programs
       exit code: 0 no problems, or notes only; 3 warnings; 1 errors; 2 wrong usage`;

/** 2 is for a wrong command line. */
const exitCodes = { error: 1, warning: 3, note: 0 } satisfies Record<Severity, number>;

/** Prints a diagnosis of the configuration, or of a running service, and exits by its worst finding. */
export async function doctor(flags: FlagValues): Promise<void> {
  const { json, role, url, internalUrl } = read(flags);
  const environment = { ...process.env, ...(role !== undefined && { LATCHKEY_ROLE: role }) };
  const diagnosis =
    url === undefined
      ? await checkConfiguration(environment, systemClock)
      : await checkService(addressesOf(url, internalUrl), systemClock);
  const worst = worstOf(diagnosis.findings);
  const hasColours = process.stdout.isTTY && !process.env.NO_COLOR;
  const subject = url === undefined ? "configuration" : "service";
  console.log(json ? toJson(subject, diagnosis, worst) : toText(diagnosis, hasColours));
  // Not `process.exit`: what is printed to a pipe must be written first. A check that hangs must not keep us.
  process.exitCode = worst === undefined ? 0 : exitCodes[worst];
  process.stdout.write("", () => process.exit());
}

/** The shape is documented in docs/doctor.md. */
function toJson(subject: string, { checked, findings }: Diagnosis, worst: Severity | undefined): string {
  return JSON.stringify({ subject, worst: worst ?? null, findings, checked }, undefined, 2);
}

const colours = { error: "31", warning: "33", note: "36" } satisfies Record<Severity, string>;

function toText({ checked, findings }: Diagnosis, hasColours: boolean): string {
  const paint = (code: string, text: string) => (hasColours ? `\u001b[${code}m${text}\u001b[0m` : text);
  const width = Math.max(...checked.map(({ area }) => area.length));
  const lines = checked.map(({ area, text }) => `${paint("2", area.padEnd(width))}  ${printable(text)}`);
  const describe = ({ id, severity, problem, why, fix }: Finding) => [
    "",
    `${paint(`1;${colours[severity]}`, severity)}: ${printable(problem)}`,
    `  why:  ${printable(why)}`,
    `  fix:  ${printable(fix)}`,
    paint("2", `  (${id}, docs/doctor.md)`),
  ];
  const bySeverity = severities.map((severity) => findings.filter((finding) => finding.severity === severity));
  const counts = bySeverity.flatMap(({ length, 0: first }) =>
    first === undefined ? [] : [`${length} ${first.severity}${length === 1 ? "" : "s"}`],
  );
  const described = bySeverity.flat().flatMap(describe);
  return [...lines, ...described, "", counts.join(", ") || paint("32", "no problems")].join("\n");
}

function read(flags: FlagValues) {
  const { json, role, url, "internal-url": internalUrl } = flags as Record<string, string | undefined>;
  try {
    if (internalUrl !== undefined && url === undefined) throw new Error("--internal-url goes with --url");
    if (role !== undefined && url !== undefined) throw new Error("--role and --url exclude each other");
    return { json, role, url: urlOf("--url", url), internalUrl: urlOf("--internal-url", internalUrl) };
  } catch (error) {
    return exitWithUsage((error as Error).message);
  }
}

function urlOf(option: string, text: string | undefined): URL | undefined {
  if (text === undefined) return undefined;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.username || url.password)
    throw new Error(`${option} must be an http or https URL without credentials`);
  return url;
}

/** The internal port is the one of the environment's settings if the service is on this machine, or if it is named. */
function addressesOf(url: URL, named: URL | undefined): ServiceAddresses {
  const readFile = (path: string) => readFileSync(path, "utf8");
  const read = <Setting extends Parameters<typeof readSetting>[0]>(setting: Setting) => {
    try {
      return readSetting(setting, withSettingsFile(process.env, readFile), readFile);
    } catch (error) {
      return exitWithUsage(`the setting of the internal port is wrong: ${(error as Error).message}`);
    }
  };
  const isHere = (address: URL) => isLoopback(hostOf(address));
  const own = new URL(localUrl(read("internalHost"), read("internalPort")));
  if (read("internalTlsCert") !== undefined) own.protocol = "https:";
  const internalUrl = named ?? (isHere(url) ? own : undefined);
  const [secret] = read("internalSecrets");
  // The rule that edges have.
  if (secret && internalUrl?.protocol === "http:" && !isHere(internalUrl) && !read("internalPrivate")) {
    return exitWithUsage(
      "--internal-url must have https:// for another machine unless its network is private (LATCHKEY_INTERNAL_PRIVATE=1): " +
        "the shared secret would be sent in cleartext",
    );
  }
  return { url, internalUrl, secret, internalCa: read("internalCa") };
}

function exitWithUsage(problem: string): never {
  console.error(`${problem}\n\n${doctorUsage}`);
  process.exit(2);
}
