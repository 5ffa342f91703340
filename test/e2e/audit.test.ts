import { describe, expect, it } from "vitest";
import type { ListEventsResponse } from "../../src/sdk/index.ts";
import { clientKinds, latchkeyOf } from "../support/clients.ts";
import { oneEngine } from "../support/engines.ts";
import { startTestServer } from "../support/in-process-server.ts";

describe.each(oneEngine)("on $name", (engine) => {
  it.each(clientKinds)("every change has one event, listed newest first, over %s", async (kind) => {
    const { baseUrl, rootKey } = await startTestServer({ settings: await engine.settings() });
    const { audit, keys } = latchkeyOf(kind, baseUrl, rootKey);
    const startedMs = Date.now();
    const { key, keyId } = await keys.createKey({ apiId: "my api", name: "secret name" });
    await keys.updateKey({ keyId, name: "another name", enabled: false });
    await keys.verifyKey({ key });
    await expect(keys.updateKey({ keyId, ifVersion: 1, name: "third name" })).rejects.toThrow();
    await keys.deleteKey({ keyId });

    const { events, cursor } = await audit.listEvents({ targetId: keyId });
    expect(cursor).toBeUndefined();
    const [{ rootKeyId } = { rootKeyId: "" }] = events;
    expect(rootKeyId).not.toBe("");
    const common = {
      id: expect.stringMatching(/^evt_\w{22}$/),
      at: expect.any(Number),
      rootKeyId,
      targetId: keyId,
      apiId: "my api",
    };
    // Changes of one millisecond have no order of their own.
    expect(events.toSorted((a, b) => (a.version ?? 0) - (b.version ?? 0))).toEqual([
      { ...common, method: "keys.createKey", fields: [], version: 1 },
      { ...common, method: "keys.updateKey", fields: ["name", "enabled"], version: 2 },
      { ...common, method: "keys.deleteKey", fields: [], version: 3 },
    ]);
    expect(JSON.stringify(events)).not.toMatch(/secret name|another name/);
    expect(events.map(({ id }) => id)).toEqual(
      events
        .map(({ id }) => id)
        .toSorted()
        .reverse(),
    );

    const methodsOf = async (request: Parameters<typeof audit.listEvents>[0]) =>
      (await audit.listEvents(request)).events.map(({ method }) => method);
    expect(await methodsOf({ method: "keys.deleteKey", rootKeyId })).toEqual(["keys.deleteKey"]);
    expect(await methodsOf({ since: startedMs })).toHaveLength(3);
    expect(await methodsOf({ until: startedMs })).toEqual([]);
    expect(await methodsOf({ rootKeyId: "root_none" })).toEqual([]);
    const first = await audit.listEvents({ limit: 2 });
    const second = await audit.listEvents({ limit: 2, cursor: first.cursor as string });
    expect([...first.events, ...second.events]).toEqual(events);
    expect(second.cursor).toBeUndefined();
  });

  it("events are listed by GET too", async () => {
    const { baseUrl, rootKey } = await startTestServer({ settings: await engine.settings() });
    const { audit, keys } = latchkeyOf("sdk", baseUrl, rootKey);
    await keys.createKey({ apiId: "a" });
    const { keyId } = await keys.createKey({ apiId: "b" });
    const ask = async (query: string, headers = { authorization: `Bearer ${rootKey}` }) => {
      const answer = await fetch(`${baseUrl}/v1/audit.listEvents${query}`, { headers });
      return { status: answer.status, body: (await answer.json()) as ListEventsResponse };
    };
    expect(await ask("")).toEqual({ status: 200, body: await audit.listEvents({}) });
    expect((await ask(`?targetId=${keyId}&since=1&limit=5`)).body.events).toMatchObject([{ apiId: "b" }]);
    const { cursor } = (await ask("?limit=1")).body;
    expect((await ask(`?limit=1&cursor=${cursor}`)).body.events).toHaveLength(1);
    expect((await ask("?limit=0")).status).toBe(400);
    expect((await ask(`?cursor=x${cursor}`)).status).toBe(400);
    expect((await ask("", { authorization: "Bearer wrong" })).status).toBe(401);
  });
});
