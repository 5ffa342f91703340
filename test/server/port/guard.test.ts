import { once } from "node:events";
import http from "node:http";
import net from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { createLog } from "../../../src/ambient/log.ts";
import { createMetrics } from "../../../src/ambient/metrics.ts";
import { Guard } from "../../../src/server/port/guard.ts";
import { TestClock } from "../../support/test-clock.ts";

function createGuard() {
  const clock = new TestClock();
  const metrics = createMetrics();
  const lines: string[] = [];
  const guard = new Guard({ clock, metrics, log: createLog("error", (line) => lines.push(line)) });
  const failures = async () => Number(/^latchkey_serving_failures_total (\d+)$/m.exec(await metrics.render())?.[1]);
  return { guard, clock, lines, failures };
}

/** A connection to ourselves: the server's end is watched. */
async function connect(guard: Guard) {
  const server = net.createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const client = net.connect((server.address() as net.AddressInfo).port, "127.0.0.1");
  const [served] = (await once(server, "connection")) as [net.Socket];
  client.on("error", () => {});
  onTestFinished(() => {
    client.destroy();
    served.destroy();
    server.close();
  });
  guard.watch(served);
  return { client, served };
}

describe("a failure on one connection destroys that connection only", () => {
  it("where a listener throws", async () => {
    const { guard, failures } = createGuard();
    const { client, served } = await connect(guard);
    served.on("data", () => {
      throw new Error("a fault");
    });
    client.write("x");
    await once(client, "close");
    expect(served.destroyed).toBe(true);
    expect(await failures()).toBe(1);
  });

  it("where an error has no listener", async () => {
    const { guard, failures } = createGuard();
    const { served } = await connect(guard);
    served.destroy(new Error("a reset"));
    await new Promise((resolve) => served.on("close", resolve));
    expect(await failures()).toBe(1);
  });

  it("where what was waited for fails, or the work after it, or a timer's work", async () => {
    const { guard, failures } = createGuard();
    const fault = () => {
      throw new Error("a fault");
    };
    const connections = [await connect(guard), await connect(guard), await connect(guard)] as const;
    const [first, second, third] = connections;
    guard.runAfter(first.served, Promise.reject(new Error("a fault")), () => {});
    guard.runAfter(second.served, Promise.resolve(), fault);
    guard.run(third.served, fault);
    await Promise.all(connections.map(({ client }) => once(client, "close")));
    expect(await failures()).toBe(3);
  });

  it("where a server's listener throws: the connection that the event is about", async () => {
    const { guard, failures } = createGuard();
    const server = http.createServer(() => {
      throw new Error("a fault");
    });
    guard.watch(server);
    onTestFinished(() => void server.close());
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as net.AddressInfo;
    const answer = await fetch(`http://127.0.0.1:${port}/`).catch((error: Error) => error.message);
    expect(answer).toBe("fetch failed");
    expect(await failures()).toBe(1);
  });
});

it("counts every failure, and logs one a second", async () => {
  const { guard, clock, lines, failures } = createGuard();
  const failing = { destroy() {} };
  const fail = () =>
    guard.run(failing, () => {
      throw new Error("a fault");
    });
  fail();
  fail();
  clock.advance(1000);
  fail();
  expect(await failures()).toBe(3);
  expect(lines).toHaveLength(2);
});
