import { chmodSync, chownSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeCertificate } from "../../support/make-certificate.ts";
import { PostgresServer } from "../../support/postgres-server.ts";

/** A password with everything that means something in a URL, and two letters that are not ASCII. */
export const password = "p@ss/w:rd?x=1&y#z%41+é ß'\"";

/** A Postgres that one role, `secured`, reaches with TLS and its password only. */
export interface SecuredPostgres {
  readonly server: PostgresServer;
  /** The certificate that vouches for the server, and one that does not. */
  readonly rightCa: string;
  readonly wrongCa: string;
  /** The URL of a new database of the role's own, with these options. */
  url(options: string, withPassword?: string): Promise<string>;
  remove(): Promise<void>;
}

export async function startSecuredPostgres(): Promise<SecuredPostgres> {
  const folder = mkdtempSync(join(tmpdir(), "latchkey-test-"));
  chmodSync(folder, 0o755);
  const [right, wrong] = [makeCertificate(folder, "right"), makeCertificate(folder, "wrong")];
  // The server must own its key file. When the tests run as root, the server runs as the user "nobody".
  if (process.getuid?.() === 0) chownSync(right.key, 65_534, 65_534);
  const access = join(folder, "pg_hba.conf");
  // The first line is for the tests' own errands.
  writeFileSync(access, "host all latchkey 127.0.0.1/32 trust\nhostssl all secured 127.0.0.1/32 scram-sha-256\n");
  const server = await PostgresServer.start({
    ssl: "on",
    ssl_cert_file: right.certificate,
    ssl_key_file: right.key,
    hba_file: access,
    password_encryption: "scram-sha-256",
  });
  await server.query(`CREATE ROLE secured LOGIN PASSWORD '${password.replaceAll("'", "''")}'`);
  return {
    server,
    rightCa: right.certificate,
    wrongCa: wrong.certificate,
    async url(options, withPassword = password) {
      const url = new URL(await server.createDatabase());
      await server.query(`ALTER DATABASE ${url.pathname.slice(1)} OWNER TO secured`);
      return `postgres://secured:${encodeURIComponent(withPassword)}@${url.host}${url.pathname}${options}`;
    },
    async remove() {
      await server.remove();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
