import net from "node:net";
import { afterAll, describe, expect, it, onTestFinished } from "vitest";
import { watchProcessors } from "../support/processors.ts";
import { Arena } from "./attack/arena.ts";
import { pipeline, verifyRequest } from "./attack/pipeline.ts";
import { tooSlowAttacks } from "./attack/slow-attacks.ts";
import { startBroken, startImpatient } from "./attack/victim.ts";
import { replay, seedFor, timeoutMs } from "./run-options.ts";

/* Attacks of which the outcome is the same on a busy machine: clients that only wait, and servers that must be found. */

const attackMs = 500;

describe("a service with short time-outs", { timeout: timeoutMs }, () => {
  const arena = new Arena(startImpatient, console.log);
  afterAll(() => arena.close());

  it.each(Object.keys(tooSlowAttacks))("disconnects a client that is %s", async (attack) => {
    expect(await arena.run(attack, seedFor(attack), attackMs), replay).toEqual([]);
  });
});

describe("the harness", { timeout: timeoutMs }, () => {
  it("finds a service that stalls, keeps memory and answers wrong", async () => {
    const arena = new Arena(startBroken, console.log);
    onTestFinished(() => arena.close());
    const wanted = ["memory grew by", "the honest client was served wrong", "the honest client's p99"];
    const processors = watchProcessors();
    const findings: string[] = [];
    const isMissing = (text: string) => !findings.some((one) => one.includes(text));
    // On a starved machine an attack may be over before enough has come of it.
    for (let times = 1; times <= 3 && wanted.some(isMissing); times++)
      findings.push(...(await arena.run("pipelines of unknown keys", seedFor("broken"), attackMs)));
    // There every client is late, with or without an attack.
    if (processors.share() < 0.8) wanted.pop();
    for (const text of wanted) expect(findings).toContainEqual(expect.stringContaining(text));
  });

  it("finds a request without an answer", async () => {
    const server = net.createServer((socket) => {
      socket.on("error", () => {});
      socket.once("data", () => socket.end("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".repeat(9)));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void server.close());
    const { port } = server.address() as net.AddressInfo;
    const [problem] = await pipeline(port, Buffer.from(verifyRequest("x").repeat(10)), 10);
    expect(problem).toContain("9 of 10 whole requests were answered");
  });
});
