import { readFileSync } from "node:fs";
import * as grpc from "@grpc/grpc-js";
import { describe, expect, it, vi } from "vitest";
import { askFor } from "../ratelimit/strict/asks.ts";
import { type Certificate, identityOf, makeCertificate } from "../support/make-certificate.ts";
import { ones } from "../support/ones.ts";
import { sumMetric } from "../support/read-metric.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { askingFor, openRawStream } from "./raw-stream.ts";
import {
  edgeAt,
  limiterAt,
  sharedSecret,
  startTestCoordinator,
  strictKey,
  type TestCoordinator,
} from "./test-coordinator.ts";

const { OK, UNAUTHENTICATED, UNAVAILABLE } = grpc.status;

async function refusedBy({ metrics }: TestCoordinator): Promise<number> {
  return Number(/^latchkey_internal_refused_total (\d+)$/m.exec(await metrics.render())?.[1]);
}

describe("the internal service", () => {
  it.each([
    ["none", undefined],
    ["another", `Bearer ${sharedSecret}x`],
    ["half of it", `Bearer ${sharedSecret.slice(0, -1)}`],
    ["an empty one", "Bearer "],
    ["it without the scheme", sharedSecret],
  ])("refuses a client that shows %s instead of the secret, and counts it", async (_, authorization) => {
    const coordinator = await startTestCoordinator({ secret: sharedSecret });
    const keyId = await strictKey(coordinator.store, 10);
    const stream = openRawStream(coordinator.address, authorization);
    stream.send({ calls: [askingFor(1, { subject: keyId, waiting: ones(1) })] });
    const status = await stream.ended;
    expect(status.code).toBe(UNAUTHENTICATED);
    expect(JSON.stringify([status, stream.messages])).not.toContain(sharedSecret.slice(0, 20));
    expect([stream.messages, coordinator.asked]).toEqual([[], []]);
    expect(await refusedBy(coordinator)).toBe(1);
  });

  it("serves an edge that knows the secret; one that does not stays away, and each of its tries is counted", async () => {
    const coordinator = await startTestCoordinator({ secret: sharedSecret });
    const keyId = await strictKey(coordinator.store, 10);
    const stranger = edgeAt([coordinator.address], { secret: `${sharedSecret}x` });
    const edge = edgeAt([coordinator.address], { secret: sharedSecret });
    await vi.waitFor(() => expect(edge.core.coordinators.isUp).toBe(true));
    expect(await edge.permits.exchange(keyId, askFor({ waiting: ones(3) }))).toMatchObject({ granted: 3, limit: 10 });
    await vi.waitFor(async () => expect(await refusedBy(coordinator)).toBeGreaterThan(1));
    expect(stranger.core.coordinators.isUp).toBe(false);
  });

  it("serves an edge that shows a certificate instead of the secret; one of another authority stays away", async () => {
    const folder = tempFolder();
    const [ca, otherCa] = [makeCertificate(folder, "ca"), makeCertificate(folder, "other")];
    const trusted = readFileSync(ca.certificate, "utf8");
    const { certPem: cert, keyPem: key } = identityOf(makeCertificate(folder, "coordinator", ca));
    const tls = { cert, key, versionMin: "TLSv1.3", clientCa: trusted, isClientCertRequired: true } as const;
    const coordinator = await startTestCoordinator({ tls });
    const keyId = await strictKey(coordinator.store, 10);
    const at = (issuer: Certificate) =>
      edgeAt([`https://${coordinator.address}`], {
        ca: trusted,
        ...identityOf(makeCertificate(folder, "edge", issuer)),
      });
    const [edge, stranger] = [at(ca), at(otherCa)];
    await vi.waitFor(() => expect(edge.core.coordinators.isUp).toBe(true));
    expect(await edge.permits.exchange(keyId, askFor({ waiting: ones(3) }))).toMatchObject({ granted: 3, limit: 10 });
    const failed = "latchkey_tls_handshakes_failed_total";
    await vi.waitFor(async () => expect(sumMetric(await coordinator.metrics.render(), failed)).toBeGreaterThan(1));
    expect(stranger.core.coordinators.isUp).toBe(false);
  });

  it("sends a first message at once, and ends when the edge has ended and has its answers", async () => {
    const { address, store } = await startTestCoordinator();
    const keyId = await strictKey(store, 10);
    const stream = openRawStream(address);
    await vi.waitFor(() => expect(stream.messages).toMatchObject([{ answers: [], recalls: [] }]));
    stream.send({ calls: [askingFor(5, { subject: keyId, waiting: ones(4) })] });
    await vi.waitFor(() => expect(stream.messages.length).toBe(2));
    expect(stream.messages[1]?.answers).toMatchObject([{ id: 5, answer: { case: "permits", value: { granted: 4 } } }]);
    stream.end();
    expect((await stream.ended).code).toBe(OK);
  });

  it("answers many asks of one message in few messages", async () => {
    const { address, store } = await startTestCoordinator();
    const keyIds = await Promise.all(Array.from({ length: 400 }, () => strictKey(store, 10)));
    const stream = openRawStream(address);
    stream.send({ calls: keyIds.map((keyId, id) => askingFor(id, { subject: keyId, waiting: ones(1) })) });
    await vi.waitFor(() => expect(stream.answers.length).toBe(400));
    expect(stream.messages.length).toBeLessThan(10);
    expect(new Set(stream.answers.map(({ id }) => id)).size).toBe(400);
  });

  it("says of an unknown key that it is missing", async () => {
    const { address } = await startTestCoordinator();
    const stream = openRawStream(address);
    stream.send({ calls: [askingFor(1, { subject: "key_nobody", waiting: ones(1) })] });
    await vi.waitFor(() => expect(stream.messages[1]?.answers).toMatchObject([{ answer: { case: "missing" } }]));
  });

  const ask = { waiting: ones(1), gen: 1, returned: 0, spent: 0 };
  it.each([
    ["wants less than nothing", { ...ask, waiting: ones(-1) }],
    ["wants a cost of nothing", { ...ask, waiting: [{ cost: 0, count: 1 }] }],
    ["wants a cost below nothing", { ...ask, waiting: [...ones(1), { cost: -5, count: 1 }] }],
    ["waits for no request", { ...ask, waiting: [{ cost: 5, count: 0 }] }],
    ["waits for more runs than an edge sends", { ...ask, waiting: Array(101).fill({ cost: 2, count: 1 }) }],
    ["wants less than nothing in advance", { ...ask, waiting: ones(5), inAdvance: -1 }],
    ["gives back less than nothing", { ...ask, returned: -1 }],
    ["spent less than nothing", { ...ask, spent: -2_147_483_648 }],
    ["is of a window that is no number", { ...ask, gen: Number.NaN }],
    ["is of a window without end", { ...ask, gen: Number.POSITIVE_INFINITY }],
    ["is of a window before the first", { ...ask, gen: -1 }],
    ["is of half a window", { ...ask, gen: 1.5 }],
    ["is of a window beyond counting", { ...ask, gen: 2 ** 53 }],
  ])("takes no ask that %s, and it does no harm", async (_, impossible) => {
    const coordinator = await startTestCoordinator();
    const keyId = await strictKey(coordinator.store, 10);
    const stream = openRawStream(coordinator.address);
    stream.send({ calls: [askingFor(1, { ...impossible, subject: keyId })] });
    expect((await stream.answered).case).toBe("unknown");
    expect(coordinator.asked).toEqual([]);
    expect(await spendAll(coordinator, keyId)).toBe(10);
  });

  it.each([
    ["wants more than there can be", { ...ask, waiting: ones(2_147_483_647) }, 10],
    ["wants the largest costs", { ...ask, waiting: Array(100).fill({ cost: 2_147_483_647, count: 2_147_483_647 }) }, 0],
    [
      "wants costs of which some fit",
      {
        ...ask,
        waiting: [
          { cost: 4, count: 2_147_483_647 },
          { cost: 3, count: 9 },
        ],
      },
      8,
    ],
    ["gives back more than was ever handed out", { ...ask, waiting: [], returned: 2_147_483_647 }, 0],
    ["reports more spent than was handed out", { ...ask, waiting: [], spent: 2_147_483_647 }, 0],
  ])("never hands out more than the limit, when an ask %s", async (_, greedy, got) => {
    const coordinator = await startTestCoordinator();
    const keyId = await strictKey(coordinator.store, 10);
    const stream = openRawStream(coordinator.address);
    for (let id = 1; id <= 3; id++) stream.send({ calls: [askingFor(id, { ...greedy, subject: keyId })] });
    await vi.waitFor(() => expect(stream.answers.length).toBe(3));
    const grants = stream.answers.map(({ answer }) => (answer.case === "permits" ? answer.value.granted : Number.NaN));
    expect(grants.reduce((sum, granted) => sum + granted)).toBe(got);
    expect(await spendAll(coordinator, keyId)).toBe(10 - got);
  });

  it.each([
    ["no message at all", Buffer.from("no protobuf")],
    ["a message of more than 8 MiB", Buffer.alloc(8 * 1024 * 1024 + 1)],
  ])("ends the stream of a client that sends %s, and goes on serving the others", async (_, bytes) => {
    const coordinator = await startTestCoordinator();
    const keyId = await strictKey(coordinator.store, 10);
    const stream = openRawStream(coordinator.address);
    stream.sendBytes(bytes);
    expect((await stream.ended).code).not.toBe(OK);
    expect(await spendAll(coordinator, keyId)).toBe(10);
  });

  it.each([
    ["ends", (stream: ReturnType<typeof openRawStream>) => stream.end()],
    ["breaks off", (stream: ReturnType<typeof openRawStream>) => stream.cancel()],
    ["sends what it must not", (stream: ReturnType<typeof openRawStream>) => stream.sendBytes(Buffer.from("no"))],
  ])("forgets an edge whose stream %s: it no longer counts as sharing the key", async (_, leave) => {
    const { address, store, asked } = await startTestCoordinator();
    const keyId = await strictKey(store, 100);
    const [leaving, staying] = [openRawStream(address), openRawStream(address)];
    for (const stream of [leaving, staying]) {
      stream.send({ calls: [askingFor(1, { subject: keyId, waiting: ones(1) })] });
      await vi.waitFor(() => expect(stream.messages.length).toBe(2));
    }
    expect(asked.at(-1)?.holders).toBe(2);
    leave(leaving);
    await leaving.ended;
    await vi.waitFor(() => {
      staying.send({ calls: [askingFor(2, { subject: keyId, waiting: ones(1), gen: 1, spent: 1 })] });
      expect(asked.at(-1)?.holders).toBe(1);
    });
  });

  it("sends its own time at least every 50 ms or so, whatever its ledger does", async () => {
    const { address, store, ledger } = await startTestCoordinator();
    const keyId = await strictKey(store, 10);
    ledger.delay = () => new Promise(() => {});
    const stream = openRawStream(address);
    await vi.waitFor(() => expect(stream.messages.length).toBe(1));
    stream.send({ calls: [askingFor(1, { subject: keyId, waiting: ones(1) })] });
    await vi.waitFor(() => expect(stream.heartbeats.length).toBeGreaterThan(10));
    const times = stream.heartbeats.map(({ timeMs }) => timeMs);
    expect(times).toEqual(times.toSorted((a, b) => a - b));
    expect(stream.heartbeats.every(({ ledgerAway, stopping }) => !ledgerAway && !stopping)).toBe(true);
    ledger.isAway = true;
    await vi.waitFor(() => expect(stream.heartbeats.at(-1)).toMatchObject({ ledgerAway: true, stopping: false }));
  });

  it("told to stop, tells edges to go, and answers until each has ended its stream", async () => {
    const { address, store, streams, ledger } = await startTestCoordinator();
    const keyId = await strictKey(store, 10);
    const release: (() => void)[] = [];
    ledger.delay = () => new Promise((resolve) => release.push(resolve));
    const stream = openRawStream(address);
    await vi.waitFor(() => expect(stream.messages.length).toBe(1));
    stream.send({ calls: [askingFor(1, { subject: keyId, waiting: ones(4) })] });
    await vi.waitFor(() => expect(release.length).toBe(1));
    let stopped = false;
    const stopping = streams.stop(5000).then(() => {
      stopped = true;
    });
    await vi.waitFor(() => expect(stream.heartbeats.at(-1)).toMatchObject({ stopping: true }));
    stream.end();
    const late = openRawStream(address);
    expect((await late.ended).code).toBe(UNAVAILABLE);
    expect(stopped).toBe(false);
    release[0]?.();
    await stopping;
    expect((await stream.ended).code).toBe(OK);
    expect(stream.messages[1]?.answers).toMatchObject([{ id: 1, answer: { case: "permits", value: { granted: 4 } } }]);
  });

  it("stops without an edge that does not go, after a while", async () => {
    const { address, streams } = await startTestCoordinator();
    const stream = openRawStream(address);
    await vi.waitFor(() => expect(stream.messages.length).toBe(1));
    const startedMs = performance.now();
    await streams.stop(200);
    expect(performance.now() - startedMs).toBeGreaterThan(190);
  });

  it("tells edges that it stops", async () => {
    const { address, stop } = await startTestCoordinator();
    const stream = openRawStream(address);
    await vi.waitFor(() => expect(stream.messages.length).toBe(1));
    await stop();
    expect((await stream.ended).code).toBe(UNAVAILABLE);
  });
});

/** How many an edge can still let pass. */
async function spendAll({ address }: TestCoordinator, keyId: string): Promise<number> {
  const edge = limiterAt([address]);
  await vi.waitFor(() => expect(edge.core.coordinators.isUp).toBe(true));
  let admitted = 0;
  for (let i = 0; i < 15; i++) {
    const permit = await edge.take(keyId, { mode: "strict", limit: 10, durationMs: 60_000 });
    permit.commit();
    admitted += Number(permit.outcome === "admitted");
  }
  return admitted;
}
