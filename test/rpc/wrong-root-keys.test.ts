import { Code } from "@connectrpc/connect";
import { describe, expect, it, onTestFinished } from "vitest";
import { failuresMax } from "../../src/domain/failures-by-address.ts";
import { unlimitedRootKey } from "../../src/domain/root-key.ts";
import type { CheckRootKey } from "../../src/store/root-access.ts";
import { composePublicApi } from "../support/compose-public-api.ts";
import { coreElsewhere } from "../support/core-elsewhere.ts";
import { sumMetric } from "../support/read-metric.ts";
import { TestClock } from "../support/test-clock.ts";
import { checkTestRootKey, testRootKey } from "../support/test-root-key.ts";
import { connectWire, type HttpAnswer, type Wire } from "./exchange.ts";
import { type CallName, encode, type Protocol, protocols } from "./protocols.ts";

const wrongRootKey = "another-root-key";

/** Verifications need a root key too, so that the fast path over gRPC is one of the paths. */
async function start(check: CheckRootKey = checkTestRootKey, atCore?: CheckRootKey) {
  const clock = new TestClock();
  const { onePort, logLines, metrics } = composePublicApi(
    (parts) => ({
      verifyAuth: "required",
      checkRootKey: check,
      ...(atCore && coreElsewhere({ ...parts, management: parts.store.management, checkRootKey: atCore })),
    }),
    { clock },
  );
  const port = await onePort.listen(0, "127.0.0.1");
  onTestFinished(() => onePort.close(0));
  const failures = async () => sumMetric(await metrics.render(), "latchkey_root_key_failures_total");
  return { port, clock, logLines, failures };
}

/** Calls a method with each of these root keys, one after the other. */
async function callWith(wire: Wire, protocol: Protocol, call: CallName, rootKeys: readonly (string | undefined)[]) {
  const answers: HttpAnswer[] = [];
  for (const rootKey of rootKeys) {
    const answer = await (protocol.http === 1 ? wire.over1 : wire.over2)({
      method: "POST",
      path: protocol.pathOf(call),
      headers: {
        "content-type": protocol.contentType,
        authorization: rootKey && `Bearer ${rootKey}`,
        // Says nothing: anybody can send it.
        "x-forwarded-for": `192.0.2.${answers.length}`,
      },
      body: encode(protocol, call, call === "verifyKey" ? { key: "unknown" } : { apiId: "api" }),
    });
    answers.push(answer);
  }
  return answers;
}

function retryAfterOf({ headers, trailers, body }: HttpAnswer): string | null | undefined {
  return headers.get("retry-after") ?? trailers.get("retry-after") ?? /retry-after: (\d+)/.exec(body.toString())?.[1];
}

const wrong = (count: number) => Array<string>(count).fill(wrongRootKey);
const protocolNamed = (name: string) => protocols.find((protocol) => protocol.name === name) as Protocol;

describe.each(protocols)("over $name", (protocol) => {
  it.each(["verifyKey", "createKey"] as const)(
    "the 21st wrong root key of an address in a minute is one too many for %s",
    async (call) => {
      const { port, clock, logLines, failures } = await start();
      const wire = connectWire(port);
      const codesFor = async (rootKeys: readonly string[], from = wire) =>
        (await callWith(from, protocol, call, rootKeys)).map((answer) => protocol.readError(answer)?.code);

      expect(await codesFor([...wrong(failuresMax - 1), testRootKey, wrongRootKey])).toEqual([
        ...Array(failuresMax - 1).fill("UNAUTHORIZED"),
        undefined,
        "UNAUTHORIZED",
      ]);
      // A real clock does not stand at a whole millisecond.
      clock.advance(15_000.4);
      const [answer] = (await callWith(wire, protocol, call, [wrongRootKey])) as [HttpAnswer];
      expect(protocol.readError(answer)).toMatchObject({
        code: "TOO_MANY_REQUESTS",
        message: "too many wrong root keys came from your address; a valid one is served",
      });
      expect(protocol.readError(answer)?.rpc ?? Code.ResourceExhausted).toBe(Code.ResourceExhausted);
      if (!protocol.framed) expect(answer.status).toBe(429);
      expect(retryAfterOf(answer)).toBe("45");
      // The same address with a valid root key, and another address.
      expect(await codesFor([testRootKey, wrongRootKey])).toEqual([undefined, "TOO_MANY_REQUESTS"]);
      expect(await codesFor([wrongRootKey], connectWire(port, "127.0.0.2"))).toEqual(["UNAUTHORIZED"]);
      clock.advance(45_000);
      expect(await codesFor([wrongRootKey, testRootKey])).toEqual(["UNAUTHORIZED", undefined]);

      expect(await failures()).toBe(failuresMax + 4);
      const lines = logLines.map((line) => JSON.parse(line));
      const line = { level: "warn", msg: "a root key was refused", address: "127.0.0.1" };
      expect(lines).toMatchObject([
        { ...line, code: "UNAUTHORIZED", unlogged: 0 },
        { ...line, code: "TOO_MANY_REQUESTS", unlogged: failuresMax - 1 },
        { ...line, code: "UNAUTHORIZED", unlogged: 2 },
      ]);
      expect(logLines.join()).not.toContain(wrongRootKey);
    },
  );
});

describe("wrong root keys", () => {
  const json = protocolNamed("json over HTTP/1.1");

  it("count together over all protocols, also with GET", async () => {
    const { port } = await start();
    const wire = connectWire(port);
    const perProtocol = failuresMax / 4;
    for (const protocol of protocols.slice(0, 4)) await callWith(wire, protocol, "createKey", wrong(perProtocol));
    const authorization = `Bearer ${wrongRootKey}`;
    for (const over of [wire.over1, wire.over2]) {
      const request = {
        method: "GET",
        path: "/v1/keys.listKeys?apiId=api",
        headers: { authorization },
        body: Buffer.of(),
      };
      expect((await over(request)).status).toBe(429);
    }
  });

  it("are not calls without a root key: those are refused as always and not counted", async () => {
    const { port, logLines, failures } = await start();
    const wire = connectWire(port);
    const answers = await callWith(wire, json, "createKey", Array(failuresMax + 1).fill(undefined));
    expect(answers.map(({ status }) => status)).toEqual(Array(failuresMax + 1).fill(401));
    expect(await failures()).toBe(0);
    expect(logLines).toEqual([]);
    const [answer] = await callWith(wire, json, "createKey", [wrongRootKey]);
    expect(answer?.status).toBe(401);
  });

  it("are also root keys that only the core knows to be revoked", async () => {
    const { port } = await start(
      () => unlimitedRootKey("root_test"),
      () => undefined,
    );
    const answers = await callWith(connectWire(port), json, "createKey", Array(failuresMax + 1).fill(testRootKey));
    expect(answers.map(({ status }) => status)).toEqual([...Array(failuresMax).fill(401), 429]);
  });
});
