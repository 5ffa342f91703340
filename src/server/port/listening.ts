import type { AddressInfo, ListenOptions, Server } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";

/** Resolves to the bound port, 0 for a Unix socket. Rejects with Node's error if it cannot be bound. */
export function listenAt(server: Server, at: ListenOptions): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(at, () => {
      server.off("error", reject);
      const address = server.address() as AddressInfo | string;
      resolve(typeof address === "string" ? 0 : address.port);
    });
  });
}

/** Node's default backlog: connections that wait to be accepted. */
const backlogMax = 511;
/** Nothing waits any more after so many turns of the event loop in a row without a new connection. */
const quietTurnsMin = 5;

/**
 * Accepts the connections that already wait, before a listener is closed: closing resets those that still wait, and each turn of
 * the event loop accepts one. So the backlog is reduced to one, and this resolves after some turns without a new
 * connection. A client that connects meanwhile retries by itself, and is refused then.
 */
export async function acceptWaiting(server: Server): Promise<void> {
  if (!server.listening) return;
  let accepted = 0;
  server.on("connection", () => accepted++);
  // There is no public way to change this number for a server that listens.
  const { _handle: handle } = server as unknown as { _handle: { listen(backlog: number): unknown } | null };
  handle?.listen(0);
  // The current turn may have begun long ago: wait for its end.
  await nextTurn();
  let quietTurns = 0;
  // A bound on the turns: connections that keep coming must not keep the server from stopping.
  for (let turn = 0; turn < backlogMax && quietTurns < quietTurnsMin; turn++) {
    const before = accepted;
    await nextTurn();
    quietTurns = accepted === before ? quietTurns + 1 : 0;
  }
}
