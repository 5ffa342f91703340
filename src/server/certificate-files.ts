import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import type { Ambient } from "../ambient/ambient.ts";
import { readTlsIdentity, type TlsFiles, type TlsIdentity } from "../config/tls-files.ts";

/**
 * The files of a certificate and its private key, which are replaced while they are in use. Files that do not belong
 * together, for example because only one of them has been replaced yet, change nothing.
 */
export class CertificateFiles {
  readonly #files: TlsFiles;
  readonly #deps: Pick<Ambient, "clock" | "log">;
  #identity: TlsIdentity;
  /** The last problem that was logged. */
  #problem: string | undefined;

  /** Throws `TlsFilesError`. */
  constructor(files: TlsFiles, deps: Pick<Ambient, "clock" | "log">) {
    this.#files = files;
    this.#deps = deps;
    this.#identity = readTlsIdentity(files, (path) => readFileSync(path, "utf8"));
    this.#warnOfDates();
  }

  get identity(): TlsIdentity {
    return this.#identity;
  }

  get expiresMs(): number {
    return Date.parse(this.#identity.certificate.validTo);
  }

  /** Reads the files again. Resolves to what is new in them, or to undefined if nothing is. Never rejects. */
  async refresh(): Promise<TlsIdentity | undefined> {
    try {
      const { certFile, keyFile } = this.#files;
      const paths = [...new Set([certFile, keyFile])];
      const texts = new Map(
        await Promise.all(paths.map(async (path) => [path, await readFile(path, "utf8")] as const)),
      );
      const [certPem, keyPem] = [texts.get(certFile), texts.get(keyFile)];
      if (certPem === this.#identity.certPem && keyPem === this.#identity.keyPem.reveal()) {
        this.#problem = undefined;
        return undefined;
      }
      this.#identity = readTlsIdentity(this.#files, (path) => texts.get(path) as string);
    } catch (error) {
      this.#warn(error as NodeJS.ErrnoException);
      return undefined;
    }
    this.#problem = undefined;
    this.#deps.log.info("the internal port has a new certificate", { expires: this.#identity.certificate.validTo });
    this.#warnOfDates();
    return this.#identity;
  }

  #warn(error: NodeJS.ErrnoException): void {
    const reason = error.code ?? error.message;
    if (reason === this.#problem) return;
    this.#problem = reason;
    this.#deps.log.warn("the internal port keeps its certificate: its new files cannot be used", { reason });
  }

  #warnOfDates(): void {
    const { validFrom, validTo } = this.#identity.certificate;
    const nowMs = this.#deps.clock.nowMs();
    if (nowMs >= Date.parse(validTo)) {
      this.#deps.log.warn("the certificate of the internal port has expired: edges refuse it", { expired: validTo });
    } else if (nowMs < Date.parse(validFrom)) {
      this.#deps.log.warn("the certificate of the internal port is not valid yet: edges refuse it", {
        from: validFrom,
      });
    }
  }
}
