import { once } from "node:events";
import http from "node:http";
import { describe, expect, it } from "vitest";
import { startLatchkey } from "../support/latchkey-process.ts";
import { freePort } from "../support/local-server.ts";
import { makeCertificate } from "../support/make-certificate.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { createTestDatabase, hasPostgres } from "../support/test-database.ts";
import { atTestEnd } from "../support/test-end.ts";
import { testInternalSecret } from "../support/test-root-key.ts";
import { healthyEnvironment, runDoctor } from "./run-doctor.ts";

async function freePorts() {
  return { PORT: String(await freePort()), LATCHKEY_INTERNAL_PORT: String(await freePort()) };
}

function tls(setting: string): Record<string, string> {
  const { certificate, key } = makeCertificate(tempFolder(), "keys.example.com");
  return { [`${setting}_CERT`]: certificate, [`${setting}_KEY`]: key };
}

/** Another program that answers every request, as the port's own service does not. */
async function occupy(port: string): Promise<void> {
  const server = http.createServer((_, res) => res.end('{"status":"ok"}'));
  server.listen(Number(port), "127.0.0.1");
  await once(server, "listening");
  atTestEnd(() => void server.close());
}

function textOf({ checked }: Awaited<ReturnType<typeof runDoctor>>): string {
  return checked.map(({ text }) => text).join("\n");
}

describe.concurrent("latchkey doctor, of ports", () => {
  it.each(["PORT", "LATCHKEY_INTERNAL_PORT"] as const)("finds that another program has %s", async (setting) => {
    const ports = await freePorts();
    const environment = { ...healthyEnvironment(), ...ports };
    expect(await runDoctor(environment)).toMatchObject({ ids: [], code: 0 });
    await occupy(ports[setting]);
    const answer = await runDoctor(environment);
    expect(answer).toMatchObject({ ids: ["port-unusable"], code: 1 });
    expect(answer.findings[0]).toMatchObject({
      problem: `127.0.0.1:${ports[setting]} (${setting}) cannot be bound: another process has it`,
      fix: expect.stringContaining(`ss -ltnp 'sport = :${ports[setting]}'`),
    });
  });

  it("takes the ports of its own service for no problem, and those of another Latchkey for one", async () => {
    const environment = { ...healthyEnvironment(), ...(await freePorts()) };
    const { PORT, LATCHKEY_INTERNAL_PORT } = environment;
    await startLatchkey(environment);
    const own = await runDoctor(environment);
    expect(own).toMatchObject({ ids: [], code: 0 });
    expect(textOf(own)).toContain(`127.0.0.1:${PORT} (PORT) is in use by a Latchkey service that runs`);
    expect(textOf(own)).toContain(
      `127.0.0.1:${LATCHKEY_INTERNAL_PORT} (LATCHKEY_INTERNAL_PORT) is in use by a Latchkey service that runs`,
    );
    const other = await runDoctor({ ...environment, LATCHKEY_DATA_DIR: tempFolder() });
    expect(other).toMatchObject({ ids: ["port-unusable", "port-unusable"], code: 1 });
  });

  it.runIf(hasPostgres)("knows its own service on Postgres, over TLS and with a secret too", async () => {
    const environment = {
      ...healthyEnvironment(),
      ...(await freePorts()),
      ...tls("LATCHKEY_TLS"),
      ...tls("LATCHKEY_INTERNAL_TLS"),
      LATCHKEY_INTERNAL_SECRET: testInternalSecret,
      DATABASE_URL: await createTestDatabase(),
    };
    await startLatchkey(environment);
    const answer = await runDoctor(environment);
    expect(answer.ids).not.toContain("port-unusable");
    expect(textOf(answer).match(/is in use by a Latchkey service that runs/g)).toHaveLength(2);
  });

  it("does not report its own internal port that takes client certificates only, and still finds another program", async () => {
    const environment = {
      ...healthyEnvironment(),
      ...(await freePorts()),
      ...tls("LATCHKEY_INTERNAL_TLS"),
      LATCHKEY_INTERNAL_CLIENT_CA_FILE: makeCertificate(tempFolder(), "ca").certificate,
    };
    await startLatchkey(environment);
    const own = await runDoctor(environment);
    expect(own.ids).not.toContain("port-unusable");
    expect(textOf(own)).toContain(
      `127.0.0.1:${environment.LATCHKEY_INTERNAL_PORT} (LATCHKEY_INTERNAL_PORT) is in use by a process that wants a client certificate`,
    );
    const { LATCHKEY_INTERNAL_PORT } = await freePorts();
    await occupy(LATCHKEY_INTERNAL_PORT);
    expect((await runDoctor({ ...environment, LATCHKEY_INTERNAL_PORT })).ids).toContain("port-unusable");
  });

  it("finds an address that this machine does not have", async () => {
    const answer = await runDoctor({ ...healthyEnvironment(), ...(await freePorts()), HOST: "192.0.2.1" });
    expect(answer).toMatchObject({ ids: ["port-unusable"], code: 1 });
    expect(answer.findings[0]?.fix).toContain("Set HOST to an address of this machine");
  });
});
