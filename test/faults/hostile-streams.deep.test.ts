import { describe, expect, it, onTestFinished } from "vitest";
import { hello, openRequest, verifyHeaders } from "./hostile/http2-frames.ts";
import { RawSocket } from "./hostile/raw-socket.ts";
import { startTarget } from "./hostile/start-target.ts";

const megabyte = 1024 * 1024;

describe("a process that has just started", () => {
  const padding = Array.from({ length: 12 }, (_, index) => [`x-pad-${index}`, "x".repeat(1200)] as const);

  it.each([
    ["as small as they are", verifyHeaders],
    ["as large as they may be", [...verifyHeaders, ...padding]],
    // When the engine collects garbage is chance, and so is a few megabytes of this.
  ])("grows by less than 60 MB with 5000 incomplete streams whose headers are %s", { retry: 2 }, async (_, headers) => {
    const fresh = await startTarget();
    onTestFinished(() => fresh.stop());
    await fresh.expectUnharmed();
    const { rssBytes } = await fresh.state();
    const opened = Buffer.concat(Array.from({ length: 100 }, (_, index) => openRequest(2 * index + 1, headers)));
    const crowd = Array.from({ length: 50 }, () => new RawSocket(fresh.port).say(hello()).say(opened));
    await Promise.all(crowd.map((socket) => socket.listen()));
    await fresh.expectUnharmed();
    const grownBytes = (await fresh.state()).rssBytes - rssBytes;
    for (const socket of crowd) socket.hangUp();
    expect(grownBytes).toBeLessThan(60 * megabyte);
  });
});
