import { spawn } from "node:child_process";
import { once } from "node:events";
import net from "node:net";
import { atTestEnd } from "./test-end.ts";

const program = `
  const server = require("node:net").createServer();
  server.listen({ host: process.argv[1], port: Number(process.argv[2]), backlog: 1 }, () => console.log(server.address().port));
`;

/**
 * An address that answers no SYN, as one behind a cut link: a stopped process listens there, and the queue of connections
 * that it should accept is full. It ends with the test.
 */
export async function startSilentAddress(host = "127.0.0.1", port = 0): Promise<{ port: number; wake(): void }> {
  const child = spawn(process.execPath, ["-e", program, host, String(port)], { stdio: ["ignore", "pipe", "inherit"] });
  const filling: net.Socket[] = [];
  atTestEnd(() => {
    for (const socket of filling) socket.destroy();
    child.kill("SIGKILL");
  });
  const [line] = (await once(child.stdout, "data")) as [Buffer];
  const bound = Number(line.toString());
  child.kill("SIGSTOP");
  for (let isFull = false; !isFull; ) {
    const socket = net.connect({ host, port: bound }).on("error", () => {});
    filling.push(socket);
    isFull = await new Promise<boolean>((resolve) => {
      socket.once("connect", () => resolve(false));
      setTimeout(() => resolve(true), 200);
    });
  }
  return { port: bound, wake: () => void child.kill("SIGCONT") };
}
