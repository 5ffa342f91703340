import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connectWire } from "../rpc/exchange.ts";
import { calls, frame, inputOf, type Protocol, protocols } from "../rpc/protocols.ts";
import { type LatchkeyProcess, startLatchkey } from "../support/latchkey-process.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { testRootKey } from "../support/test-root-key.ts";
import { type CostlyBody, costlyBodiesOf } from "./bodies/costly-bodies.ts";

/** 5 ms where nothing else runs. Processors that are shared, or slow, take up to three times as long for the same. */
const cpuMsMax = 15;
const answerBytesMax = 4_096;
const timesMax = 20;

/** The processor time of the thread that serves, whose id is the process's. */
function cpuMsOf(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, "utf8").split(" ")[0]) / 1e6;
}

describe("a request of 64 KB", () => {
  let service: LatchkeyProcess;
  const undo: (() => void)[] = [];
  beforeAll(async () => {
    const settings = { LATCHKEY_ROOT_KEY: testRootKey, LATCHKEY_DATA_DIR: tempFolder((each) => undo.push(each)) };
    service = await startLatchkey(settings, undefined, (each) => undo.push(each));
  });
  afterAll(() => {
    for (const each of undo.reverse()) each();
  });

  it.each(calls)("costs %s at most 5 ms of processor time, and is answered in 4 KB", async (call) => {
    const wire = connectWire(Number(new URL(service.baseUrl).port));
    async function send(protocol: Protocol, { bytes }: CostlyBody) {
      const body = protocol.framed ? frame(bytes) : bytes;
      const headers = { "content-type": protocol.contentType, authorization: `Bearer ${testRootKey}` };
      const request = { method: "POST", path: protocol.pathOf(call), headers, body };
      return (protocol.http === 1 ? wire.over1 : wire.over2)(request);
    }
    const found: string[] = [];
    for (const [index, body] of costlyBodiesOf(inputOf(call)).entries()) {
      // One protocol each, in turn: behind the framing they are the same.
      const fitting = protocols.filter(({ codec }) => codec === body.codec);
      const protocol = fitting[index % fitting.length] as Protocol;
      const name = `${body.name}, ${protocol.name}`;
      const answer = await send(protocol, body);
      if (answer.status >= 500) found.push(`${name}: ${answer.status}`);
      const bytes = answer.body.length + [...answer.trailers, ...answer.headers].flat().join("").length;
      if (bytes > answerBytesMax) found.push(`${name}: ${bytes} bytes`);
      // The least of several: the first ones also pay for compiling, and some for the garbage of others.
      let cpuMs = Number.POSITIVE_INFINITY;
      for (let i = 0; i < timesMax && cpuMs > cpuMsMax; i++) {
        const before = cpuMsOf(service.pid);
        await send(protocol, body);
        cpuMs = Math.min(cpuMs, cpuMsOf(service.pid) - before);
      }
      if (cpuMs > cpuMsMax) found.push(`${name}: ${cpuMs.toFixed(1)} ms`);
    }
    expect(found).toEqual([]);
  });
});
