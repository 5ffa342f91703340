// Texts of the environment into values. What a parser throws says what the variable must be, never what it is.
import { isIP } from "node:net";
import { splitPostgresUrl } from "../domain/postgres-url.ts";
import { parseRedisUrl } from "../domain/redis-url.ts";
import { Secret } from "../domain/secret.ts";
import { certificatesIn } from "./certificates.ts";

const secretLengthMin = 32;
/** An edge does not send longer ones to its coordinators. */
const rootKeyLengthMax = 4096;

export function nonEmpty(text: string): string {
  if (text.trim() === "") throw new Error("must not be blank");
  return text;
}

export function host(text: string): string {
  if (isIP(text) === 0 && !/^[^\s:/@[\]]+$/.test(text)) {
    throw new Error("must be an address or a name without a port, such as 127.0.0.1, :: or keys.internal");
  }
  return text;
}

export function optionalPath(text: string): string | undefined {
  return text === "" ? undefined : nonEmpty(text);
}

export function wholeNumberBetween(min: number, max: number): (text: string) => number {
  return numberOf("a whole number", /^\d{1,15}$/, min, max);
}

/** Also with a fraction. */
export function numberBetween(min: number, max: number): (text: string) => number {
  return numberOf("a number", /^\d{1,9}(\.\d{1,15})?$/, min, max);
}

function numberOf(what: string, form: RegExp, min: number, max: number): (text: string) => number {
  return (text) => {
    const value = form.test(text) ? Number(text) : Number.NaN;
    if (!(value >= min && value <= max)) throw new Error(`must be ${what} from ${min} to ${max}`);
    return value;
  };
}

export function oneOf<Choice extends string>(...choices: Choice[]): (text: string) => Choice {
  return (text) => {
    const choice = choices.find((known) => known === text);
    if (choice === undefined) throw new Error(`must be one of ${choices.join(", ")}`);
    return choice;
  };
}

/** One of two words, and whether it is this one. */
export function either(words: readonly [string, string], yes: string): (text: string) => boolean {
  return (text) => oneOf(...words)(text) === yes;
}

export function rootKeys(text: string): readonly Secret[] {
  const keys = oneOrTwoSecrets("root key")(text);
  if (keys.some((key) => key.reveal().length > rootKeyLengthMax)) {
    throw new Error(`must be at most ${rootKeyLengthMax} characters long${whichOf(keys)}`);
  }
  return keys;
}

/** Two while one is being replaced by another. */
export function oneOrTwoSecrets(what: string): (text: string) => readonly Secret[] {
  return (text) => {
    if (text === "") return [];
    const secrets = text.split(",").map((secret) => secret.trim());
    if (secrets.length > 2) throw new Error(`must hold one ${what}, or two separated by a comma while rotating`);
    if (secrets.some((secret) => !/^[\x21-\x7e]+$/.test(secret)))
      throw new Error("must be of visible ASCII characters");
    if (secrets.some((secret) => secret.length < secretLengthMin)) {
      throw new Error(`must be at least ${secretLengthMin} characters long${whichOf(secrets)}`);
    }
    return secrets.map((secret) => new Secret(secret));
  };
}

/** A comma within one secret makes two of it, so the sentence has the comma too. */
function whichOf({ length }: readonly unknown[]): string {
  return length > 1 ? ", both before and after the comma" : "";
}

export function databaseUrl(text: string): Secret | undefined {
  if (text === "") return undefined;
  if (!splitPostgresUrl(text).every((url) => URL.canParse(url))) {
    throw new Error("must be a URL such as postgres://user:password@host:5432/database");
  }
  return new Secret(text);
}

export function addresses(text: string): readonly string[] {
  const list = text.split(",").map((address) => address.trim());
  if (text === "") return [];
  for (const address of list) {
    const { host, port } =
      /^(?:https?:\/\/)?(?<host>\[[0-9a-fA-F:]+\]|[\w.-]+):(?<port>\d{1,5})$/.exec(address)?.groups ?? {};
    if (!host || Number(port) < 1 || Number(port) > 65_535) {
      throw new Error("must be addresses such as 10.0.0.1:8081, separated by commas; https:// in front asks for TLS");
    }
  }
  return list;
}

export function redisUrl(text: string): Secret | undefined {
  if (text === "") return undefined;
  parseRedisUrl(text);
  return new Secret(text);
}

export function certificates(text: string, name: string): string | undefined {
  if (text === "") return undefined;
  try {
    if (certificatesIn(text).length === 0) throw new Error("no certificate");
  } catch {
    throw new Error(`must be certificates in PEM form; ${name}_FILE names a file that holds them`);
  }
  return text;
}

/** `name=value` pairs separated by commas, values percent-encoded: the form that OpenTelemetry gives headers. */
export function otlpHeaders(text: string): Secret | undefined {
  if (text === "") return undefined;
  try {
    new Headers(parseOtlpHeaders(text));
  } catch {
    throw new Error("must be headers such as authorization=Bearer%20token, separated by commas");
  }
  return new Secret(text);
}

/** Throws for a text that `otlpHeaders` refuses. */
export function parseOtlpHeaders(text: string): Record<string, string> {
  const pairs = text.split(",").map((pair) => {
    const [, name, value] = /^\s*([^=\s]+)\s*=(.*)$/.exec(pair) ?? [];
    if (name === undefined || value === undefined) throw new Error("a header has no value");
    return [name, decodeURIComponent(value.trim())];
  });
  return Object.fromEntries(pairs);
}

export function publicUrl(text: string): string {
  if (text === "") return "";
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isPlain = url && /^https?:$/.test(url.protocol) && !url.username && !url.password && !url.search && !url.hash;
  if (!isPlain) throw new Error("must be an http or https URL without credentials, query or fragment");
  return url.href.replace(/\/+$/, "");
}

/** Origins as browsers send them: a scheme, a host and perhaps a port. */
export function origins(text: string): readonly string[] {
  if (text === "") return [];
  const list = text.split(",").map((origin) => origin.trim());
  for (const origin of list) {
    // A URL may have a wildcard as its host, but no page has such an origin.
    const isOrigin = URL.canParse(origin) && /^https?:/.test(origin) && new URL(origin).origin === origin;
    if (!isOrigin || origin.includes("*")) {
      throw new Error("must be origins such as https://app.example.com, separated by commas; wildcards match nothing");
    }
  }
  return list;
}
