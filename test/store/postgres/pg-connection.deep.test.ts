import { expect, it, onTestFinished } from "vitest";
import { PgConnection } from "../../../src/store/postgres/pg-connection.ts";
import { PgServers } from "../../../src/store/postgres/pg-servers.ts";
import { startSilentAddress } from "../../support/silent-address.ts";

it("an attempt to connect to an address that answers nothing ends after 2 s, whatever the kernel still tries", async () => {
  const { port } = await startSilentAddress();
  const connection = new PgConnection(new PgServers(`postgres://nobody@127.0.0.1:${port}/none`), {});
  onTestFinished(() => connection.close());
  const startedMs = performance.now();
  await expect(connection.ready()).rejects.toMatchObject({ code: "ETIMEDOUT" });
  const tookMs = performance.now() - startedMs;
  expect(tookMs).toBeGreaterThan(1900);
  expect(tookMs).toBeLessThan(2900);
});
