import { describe, expect, it } from "vitest";
import { systemClock } from "../../src/ambient/clock.ts";
import { createLog } from "../../src/ambient/log.ts";
import { createMetrics } from "../../src/ambient/metrics.ts";
import { OtlpExporter, type Span } from "../../src/ambient/otlp-exporter.ts";
import { startCollector } from "../support/otlp-collector.ts";
import { sumMetric } from "../support/read-metric.ts";

const queueMax = 4096;

async function setUp() {
  const collector = await startCollector();
  const metrics = createMetrics();
  const log = createLog("warn", () => {});
  const options = { url: `${collector.endpoint}/v1/traces`, headers: {}, serviceName: "service", sampleRatio: 1 };
  const exporter = new OtlpExporter(options, { clock: systemClock, log, metrics });
  const addAll = (count: number) => {
    for (let i = 1; i <= count; i++) exporter.add(span(i));
  };
  const counts = async () => {
    const printed = await metrics.render();
    const count = (event: string) => sumMetric(printed, `latchkey_trace_spans_total{event="${event}"}`);
    return { exported: count("exported"), failed: count("failed"), dropped: count("dropped") };
  };
  return { collector, exporter, addAll, counts };
}

function span(number: number): Span {
  return {
    traceId: "a".repeat(32),
    spanId: number.toString(16).padStart(16, "0"),
    parentSpanId: undefined,
    traceState: undefined,
    name: "name",
    startUnixMs: 1_700_000_000_000.25 + number,
    endUnixMs: 1_700_000_000_001.5 + number,
    isError: false,
    attributes: { text: '"quoted"\n', number: 1, absent: undefined },
  };
}

describe.concurrent("the exporter of traces", () => {
  it("sends every span once, in batches, with its times to the microsecond", async () => {
    const { collector, exporter, addAll, counts } = await setUp();
    addAll(1100);
    await exporter.stop(60_000);
    expect(await counts()).toEqual({ exported: 1100, failed: 0, dropped: 0 });
    expect(collector.requests.length).toBe(3);
    const spans = collector.spans();
    expect(new Set(spans.map(({ spanId }) => spanId)).size).toBe(1100);
    expect(spans[0]).toMatchObject({
      startNanos: 1_700_000_000_001_250_000n,
      endNanos: 1_700_000_000_002_500_000n,
      attributes: { text: '"quoted"\n', number: "1" },
    });
    expect(Object.keys(spans[0]?.attributes ?? {})).toEqual(["text", "number"]);
  });

  it.each(["closed", "refusing", "silent"] as const)(
    "holds a bounded number of spans for a collector that is %s, and gives them up at the end",
    async (how) => {
      const { collector, exporter, addAll, counts } = await setUp();
      if (how === "closed") await collector.close();
      else collector.status = how === "refusing" ? 503 : 0;
      addAll(queueMax + 100);
      expect(await counts()).toEqual({ exported: 0, failed: 0, dropped: 100 });
      await exporter.stop();
      expect(await counts()).toEqual({ exported: 0, failed: queueMax, dropped: 100 });
    },
  );

  it("reads no answer that has no end", async () => {
    const { collector, exporter, addAll, counts } = await setUp();
    collector.isEndless = true;
    addAll(1);
    await exporter.stop(60_000);
    expect(await counts()).toEqual({ exported: 1, failed: 0, dropped: 0 });
  });

  it("exports again after a failure", async () => {
    const { collector, exporter, addAll, counts } = await setUp();
    collector.status = 503;
    addAll(512);
    await expect.poll(counts).toMatchObject({ failed: 512 });
    collector.status = 200;
    addAll(10);
    await exporter.stop(60_000);
    expect(await counts()).toEqual({ exported: 10, failed: 512, dropped: 0 });
  });
});
