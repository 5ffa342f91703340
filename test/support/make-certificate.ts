import { execFileSync } from "node:child_process";
import { chmodSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { readTlsIdentity, type TlsIdentity } from "../../src/config/tls-files.ts";
import { shellProgram } from "./shell-programs.ts";

export interface Certificate {
  /** Paths of the PEM files. */
  readonly certificate: string;
  readonly key: string;
}

/** A certificate, for this machine's own address unless told otherwise. It vouches for itself unless another one does. */
export function makeCertificate(
  folder: string,
  name: string,
  issuer?: Certificate,
  altNames = "IP:127.0.0.1",
  days = 2,
): Certificate {
  const [certificate, key] = [join(folder, `${name}.pem`), join(folder, `${name}.key`)];
  const kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", String(days)];
  const subject = ["-subj", `/CN=${name}`, "-addext", `subjectAltName=${altNames}`];
  const signed = issuer ? ["-CA", issuer.certificate, "-CAkey", issuer.key] : [];
  const files = ["-keyout", key, "-out", certificate];
  execFileSync(shellProgram("openssl"), ["req", "-x509", ...kind, ...subject, ...signed, ...files], { stdio: "pipe" });
  chmodSync(key, 0o600);
  return { certificate, key };
}

/** As the settings have it. */
export function identityOf({ certificate: certFile, key: keyFile }: Certificate): TlsIdentity {
  return readTlsIdentity({ port: "internal", certFile, keyFile }, (path) => readFileSync(path, "utf8")) as TlsIdentity;
}

/** Signs it again, by itself or by its issuer, so that it ended yesterday. */
export function expireCertificate({ certificate, key }: Certificate, issuer?: Certificate): void {
  const x509 = (args: readonly string[], input = "") =>
    execFileSync(shellProgram("openssl"), ["x509", "-copy_extensions", "copyall", ...args], { input, stdio: "pipe" });
  const request = x509(["-x509toreq", "-in", certificate, "-signkey", key]).toString();
  const signed = issuer ? ["-CA", issuer.certificate, "-CAkey", issuer.key] : ["-signkey", key];
  x509(["-req", ...signed, "-set_serial", "1", "-days", "-1", "-out", certificate], request);
}
