import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { type Environment, readSettings } from "../../src/config/settings.ts";
import { makeCertificate } from "../support/make-certificate.ts";
import { tempFolder } from "../support/temp-folder.ts";

const folder = tempFolder(afterAll);
const [own, other] = [makeCertificate(folder, "own"), makeCertificate(folder, "other")];
const locked = join(folder, "locked.key");
execFileSync("openssl", ["ec", "-in", own.key, "-aes256", "-passout", "pass:s3cr3t", "-out", locked], {
  stdio: "pipe",
});
const weak = { certificate: join(folder, "weak.pem"), key: join(folder, "weak.key") };
execFileSync(
  "openssl",
  ["req", "-x509", "-newkey", "rsa:512", "-nodes", "-subj", "/CN=weak", "-keyout", weak.key, "-out", weak.certificate],
  { stdio: "pipe" },
);

function read(environment: Environment) {
  return readSettings(environment, (path) => readFileSync(path, "utf8"));
}

function tls(cert?: string, key?: string): Environment {
  return { LATCHKEY_INTERNAL_TLS_CERT: cert, LATCHKEY_INTERNAL_TLS_KEY: key };
}

describe("the certificate of the internal port", () => {
  it("lets the port be bound beyond loopback, with the secret", () => {
    const secret = { LATCHKEY_INTERNAL_SECRET: "a-secret-of-thirty-two-characters" };
    const { settings } = read({ ...tls(own.certificate, own.key), ...secret, LATCHKEY_INTERNAL_HOST: "0.0.0.0" });
    expect(settings).toMatchObject({ internalTlsCert: own.certificate, internalTlsKey: own.key });
  });

  it.each([
    ["no key is set for", tls(own.certificate), [/CERT and LATCHKEY_INTERNAL_TLS_KEY must be set together/]],
    ["is missing beside its key", tls(undefined, own.key), [/must be set together/]],
    ["is a key", tls(own.key, own.key), [/^LATCHKEY_INTERNAL_TLS_CERT must name a file with a certificate/]],
    ["has a certificate for a key", tls(own.certificate, own.certificate), [/^LATCHKEY_INTERNAL_TLS_KEY must name a/]],
    [
      "belongs to another key",
      tls(own.certificate, other.key),
      [/^LATCHKEY_INTERNAL_TLS_KEY must name the private key/],
    ],
    [
      "has a key with a passphrase",
      tls(own.certificate, locked),
      [/^LATCHKEY_INTERNAL_TLS_KEY .* without a passphrase$/],
    ],
    [
      "has a key that is too short",
      tls(weak.certificate, weak.key),
      [/cannot be used for TLS: ERR_SSL_EE_KEY_TOO_SMALL/],
    ],
    ["is a folder", tls(folder, own.key), [/^LATCHKEY_INTERNAL_TLS_CERT names a file that cannot be read: EISDIR$/]],
  ])("is refused if it %s, in a sentence that repeats nothing of the files", (_, environment, patterns) => {
    let message = "";
    try {
      read(environment);
    } catch (error) {
      message = (error as Error).message;
    }
    expect(message.split("\n")).toEqual(patterns.map((pattern) => expect.stringMatching(pattern)));
    expect(message).not.toContain(folder);
    expect(message).not.toContain("-----");
  });
});

describe("the CA of coordinators", () => {
  const edge = { LATCHKEY_ROLE: "edge", LATCHKEY_INTERNAL_SECRET: "a-secret-of-more-than-32-characters" };

  it("is read from a file, and refused where it would vouch for nothing", () => {
    const withCa = { ...edge, LATCHKEY_INTERNAL_CA_FILE: own.certificate };
    const { settings } = read({ ...withCa, LATCHKEY_COORDINATORS: "https://10.0.0.1:8081,127.0.0.1:8081" });
    expect(settings.internalCa).toBe(readFileSync(own.certificate, "utf8").trim());
    expect(() => read({ ...withCa, LATCHKEY_COORDINATORS: "127.0.0.1:8081" })).toThrow(
      /^LATCHKEY_INTERNAL_CA must not/,
    );
    expect(() => read({ LATCHKEY_INTERNAL_CA_FILE: own.certificate })).toThrow(/^LATCHKEY_INTERNAL_CA must not/);
  });
});
