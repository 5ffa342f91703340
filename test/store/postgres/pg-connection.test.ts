import net from "node:net";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { PgConnection, type PgConnectionOptions } from "../../../src/store/postgres/pg-connection.ts";
import { PgServers } from "../../../src/store/postgres/pg-servers.ts";
import { PgSocket } from "../../../src/store/postgres/pg-socket.ts";
import { through } from "../../faults/postgres/lane-fixture.ts";
import { deadlineIn } from "../../support/deadline-in.ts";
import { startSilentAddress } from "../../support/silent-address.ts";
import { createEmptyDatabase, hasPostgres } from "../../support/test-database.ts";
import { type SecuredPostgres, startSecuredPostgres } from "./secured-postgres.ts";

const ping = { text: "SELECT 1 AS one", values: [] };
const sleep = { text: "SELECT pg_sleep(3)", values: [] };

function connectionTo(url: string, options: PgConnectionOptions = {}): PgConnection {
  const connection = new PgConnection(new PgServers(url), options);
  onTestFinished(() => connection.close());
  return connection;
}

/** A link to the database, and how its connections were ended by the client. */
async function linkTo(url: string): Promise<{ url: string; endings: string[] }> {
  const endings: string[] = [];
  const link = net.createServer((near) => {
    const far = net.connect({ host: "127.0.0.1", port: Number(new URL(url).port) }).on("error", () => {});
    near.pipe(far).pipe(near);
    near.on("end", () => endings.push("closed"));
    near.on("error", ({ code }: NodeJS.ErrnoException) => endings.push(String(code)));
    near.on("close", () => far.destroy());
  });
  await new Promise<void>((resolve) => link.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void link.close());
  return { url: through(url, (link.address() as net.AddressInfo).port), endings };
}

describe("an attempt to connect", () => {
  const createSocket = () => new PgSocket({ stepMs: 100 });

  it("to an address that answers nothing ends, whatever the kernel still tries", async () => {
    const { port } = await startSilentAddress();
    const connection = connectionTo(`postgres://nobody@127.0.0.1:${port}/none`, { createSocket });
    await expect(connection.ready()).rejects.toMatchObject({ code: "ETIMEDOUT" });
  });

  it("to a server that accepts and then says nothing ends likewise", async () => {
    const mute = net.createServer(() => {});
    await new Promise<void>((resolve) => mute.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void mute.close());
    const { port } = mute.address() as net.AddressInfo;
    const connection = connectionTo(`postgres://nobody@127.0.0.1:${port}/none`, { createSocket });
    await expect(connection.ready()).rejects.toMatchObject({ code: "ETIMEDOUT" });
  });
});

describe.runIf(hasPostgres)("a connection", () => {
  it("is made to the next address of a name if the first one answers nothing", async () => {
    const url = new URL(await createEmptyDatabase());
    await startSilentAddress("127.0.0.2", Number(url.port));
    url.hostname = "database.test";
    const tried: string[] = [];
    const lookup = ((_host, _options, callback) =>
      callback(
        null,
        ["127.0.0.2", "127.0.0.1"].map((address) => ({ address, family: 4 })),
      )) as net.LookupFunction;
    const createSocket = () =>
      new PgSocket({ stepMs: 1000, lookup }).on("connectionAttempt", (ip: string) => tried.push(ip));
    const connection = connectionTo(url.href, { createSocket });
    expect((await connection.run(ping, deadlineIn(60_000))).rows).toEqual([{ one: 1 }]);
    expect(tried).toEqual(["127.0.0.2", "127.0.0.1"]);
  });

  it("that is given up is reset, and one that is closed in order is not", async () => {
    const { url, endings } = await linkTo(await createEmptyDatabase());
    const connection = connectionTo(url);
    await connection.ready();
    await expect(connection.run(sleep, deadlineIn(50))).rejects.toThrow("no reply in time");
    connection.discard();
    await expect.poll(() => endings).toEqual(["ECONNRESET"]);
    expect((await connection.run(ping, deadlineIn(60_000))).rows).toEqual([{ one: 1 }]);
    connection.close();
    await expect.poll(() => endings).toEqual(["ECONNRESET", "closed"]);
  });

  it("that was lost lets no statement of its session run on the one after it", async () => {
    const connection = connectionTo(await createEmptyDatabase(), { keepOpen: true });
    await connection.ready();
    const session = connection.session();
    connection.discard();
    await connection.ready();
    await expect(session.run(ping, deadlineIn(60_000))).rejects.toThrow("the connection was lost");
    expect((await connection.run(ping, deadlineIn(60_000))).rows).toEqual([{ one: 1 }]);
  });

  it("that is kept open is opened again when it is lost, before anybody asks", async () => {
    const { url, endings } = await linkTo(await createEmptyDatabase());
    let opened = 0;
    const connection = connectionTo(url, { keepOpen: true, onOpen: () => void opened++ });
    await connection.ready();
    connection.discard();
    await expect.poll(() => ({ opened, isReady: connection.isReady })).toEqual({ opened: 2, isReady: true });
    expect(endings).toEqual(["ECONNRESET"]);
  });
});

describe.runIf(hasPostgres)("a connection with TLS", () => {
  let postgres: SecuredPostgres;
  beforeAll(async () => {
    postgres = await startSecuredPostgres();
  });
  afterAll(() => postgres?.remove());

  it("is reset too when it is given up", async () => {
    const { url, endings } = await linkTo(await postgres.url(`?sslmode=verify-full&sslrootcert=${postgres.rightCa}`));
    const connection = connectionTo(url);
    await connection.ready();
    await expect(connection.run(sleep, deadlineIn(50))).rejects.toThrow("no reply in time");
    connection.discard();
    await expect.poll(() => endings).toEqual(["ECONNRESET"]);
    expect((await connection.run(ping, deadlineIn(60_000))).rows).toEqual([{ one: 1 }]);
  });
});
