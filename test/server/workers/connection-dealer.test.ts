import net from "node:net";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { ConnectionDealer, type ConnectionTaker } from "../../../src/server/workers/connection-dealer.ts";

/** Takes connections when the test says so. */
class HeldTaker implements ConnectionTaker {
  readonly given: { readonly socket: net.Socket; readonly taken: () => void; readonly gone: () => void }[] = [];

  take(socket: net.Socket): Promise<void> {
    return new Promise((resolve, reject) => {
      this.given.push({ socket, taken: resolve, gone: () => reject(new Error("gone")) });
    });
  }
}

async function start() {
  const dealer = new ConnectionDealer();
  const port = await dealer.listen(0, "127.0.0.1");
  const clients: net.Socket[] = [];
  onTestFinished(async () => {
    for (const client of clients) client.destroy();
  });
  const connect = (count: number) => {
    for (let i = 0; i < count; i++) clients.push(net.connect(port, "127.0.0.1").on("error", () => {}));
  };
  return { dealer, connect, clients };
}

describe("connections", () => {
  it("are handed out in turns, the next one when the last was taken", async () => {
    const { dealer, connect } = await start();
    const takers = [new HeldTaker(), new HeldTaker()] as const;
    for (const taker of takers) dealer.add(taker);
    connect(5);
    await vi.waitFor(() => expect(takers.map(({ given }) => given.length)).toEqual([1, 1]));
    takers[1].given[0]?.taken();
    await vi.waitFor(() => expect(takers.map(({ given }) => given.length)).toEqual([1, 2]));
    takers[1].given[1]?.taken();
    await vi.waitFor(() => expect(takers.map(({ given }) => given.length)).toEqual([1, 3]));
    // The one that has not taken its connection holds up no other.
    takers[0].given[0]?.taken();
    await vi.waitFor(() => expect(takers.map(({ given }) => given.length)).toEqual([2, 3]));
    for (const taker of takers) taker.given.at(-1)?.taken();
    await dealer.close();
  });

  it("that a taker had not taken when it went are given to another, and it gets no more", async () => {
    const { dealer, connect } = await start();
    const [first, second] = [new HeldTaker(), new HeldTaker()];
    dealer.add(first);
    connect(2);
    await vi.waitFor(() => expect(first.given).toHaveLength(1));
    first.given[0]?.gone();
    dealer.remove(first);
    dealer.add(second);
    await vi.waitFor(() => expect(second.given).toHaveLength(1));
    second.given[0]?.taken();
    await vi.waitFor(() => expect(second.given).toHaveLength(2));
    second.given[1]?.taken();
    await dealer.close();
    expect(second.given.map(({ socket }) => socket)).toContain(first.given[0]?.socket);
    expect(first.given).toHaveLength(1);
  });

  it("that wait are handed out before the listener is closed", async () => {
    const { dealer, connect, clients } = await start();
    connect(3);
    await vi.waitFor(() => expect(clients.every(({ connecting }) => !connecting)).toBe(true));
    const closed = dealer.close();
    const taker = new HeldTaker();
    dealer.add(taker);
    for (let i = 0; i < 3; i++) {
      await vi.waitFor(() => expect(taker.given).toHaveLength(i + 1));
      taker.given[i]?.taken();
    }
    await closed;
  });
});
