import { describe, expect, it, onTestFinished } from "vitest";
import { clientOf } from "../../support/clients.ts";
import { isDeep, sized } from "../../support/deep.ts";
import { Fleet } from "../../support/fleet.ts";
import { FleetLoad } from "../../support/fleet-load.ts";
import { OtherKeys } from "../../support/other-keys.ts";
import { PostgresServer } from "../../support/postgres-server.ts";
import { createTestDatabase, hasPostgres } from "../../support/test-database.ts";
import { testRootKey } from "../../support/test-root-key.ts";

const countedKeys = 6;

/** Creates and deletes keys on one replica until that is killed: the call under way then has an open outcome. */
async function changeOthers(others: OtherKeys, fleet: Fleet, index: number): Promise<void> {
  const replica = fleet.replica(index);
  const client = clientOf("sdk", replica.baseUrl, testRootKey);
  const doomed = others.halfOfThose();
  try {
    while (!fleet.isKilled(replica)) {
      await others.createOne(client);
      await others.deleteOne(client, doomed.pop());
    }
  } catch (error) {
    if (!fleet.isKilled(replica)) throw error;
  }
}

describe.runIf(hasPostgres)("replicas on one Postgres", () => {
  const kills = sized(3, 30);

  it(`lose no acknowledged use, key or deletion in ${kills} kills of one of them`, async () => {
    const url = await createTestDatabase();
    const fleet = await Fleet.start(url, 3);
    const load = await FleetLoad.create(fleet, countedKeys);
    const others = new OtherKeys();
    for (let kill = 0; kill < kills; kill++) {
      const victim = kill % fleet.size;
      await load.during(async () => {
        const changing = changeOthers(others, fleet, victim);
        // From the middle of the first commits to well into the load.
        await load.usesOnEach(3 + ((kill * 37) % 60));
        // With few kills there must be many changes before them: keys first, of which half are deleted then.
        if (!isDeep && kill === 0) while (others.count("there") < 16) await load.usesOnEach(1);
        if (!isDeep && kill === 1) while (others.count("deleted") < 6) await load.usesOnEach(1);
        await fleet.kill(victim);
        await changing;
        // A start under load takes long on few cores: one in five has to do.
        if (kill % 5 === 0) await fleet.replace(victim);
      });
      if (kill % 5 !== 0) await fleet.replace(victim);
      expect(await load.account(url)).toEqual([]);
    }
    expect(load.oddities).toEqual([]);
    expect(load.figures).toMatchObject({ lost: 0, doubled: 0 });
    // The survivors answer everything: a charge without an answer was under way in a killed process.
    expect(load.figures.extra).toBeLessThanOrEqual(load.figures.unanswered);
    expect(await others.wrong(clientOf("grpc", fleet.replica(0).baseUrl, testRootKey))).toEqual([]);
    // Otherwise there was hardly a load, and nothing has been shown.
    expect(load.figures.acknowledged).toBeGreaterThan(kills * 100);
    expect(load.figures.unanswered).toBeGreaterThan(kills);
    for (const state of ["there", "deleted"] as const) expect(others.count(state)).toBeGreaterThan(5);
  });
});

describe.runIf(hasPostgres)("a Postgres that is killed while replicas use it", () => {
  const kills = sized(2, 10);

  it(`has lost no acknowledged use after ${kills} kills, and the replicas go on`, async () => {
    const postgres = await PostgresServer.start();
    onTestFinished(() => postgres.remove());
    const fleet = await Fleet.start(postgres.url(), 2);
    const { pids } = fleet;
    const load = await FleetLoad.create(fleet, countedKeys);
    for (let kill = 0; kill < kills; kill++) {
      await load.during(async () => {
        await load.usesOnEach(20 + ((kill * 37) % 100));
        await postgres.kill();
        await postgres.up();
        await load.usesOnEach(20);
      });
      expect(await load.account(postgres.url())).toEqual([]);
    }
    expect(load.oddities).toEqual([]);
    expect(load.figures).toMatchObject({ lost: 0, doubled: 0, unanswered: 0 });
    expect(load.figures.extra).toBeLessThanOrEqual(load.figures.unavailable);
    for (const baseUrl of fleet.baseUrls) expect((await fetch(`${baseUrl}/livez`)).status).toBe(200);
    expect(pids.filter((pid) => !isRunning(pid))).toEqual([]);
    // Otherwise there was hardly a load, and nothing has been shown.
    expect(load.figures.acknowledged).toBeGreaterThan(kills * 100);
  });
});

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
