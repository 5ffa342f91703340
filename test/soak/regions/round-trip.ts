/* Prints how long a connection to an address takes, in milliseconds: the shortest of a few. Runs inside a host. */
import { once } from "node:events";
import net from "node:net";
import { monotonicMs } from "./clock.ts";

const [host = "", port = ""] = process.argv.slice(2);
let shortestMs = Number.POSITIVE_INFINITY;
for (let i = 0; i < 4; i++) {
  const startMs = monotonicMs();
  const socket = net.connect(Number(port), host);
  await once(socket, "connect");
  shortestMs = Math.min(shortestMs, monotonicMs() - startMs);
  socket.destroy();
}
console.log(shortestMs.toFixed(1));
