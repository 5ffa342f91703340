// Callers that make a connection for each request, in a process of their own: `fork`ed with a message, answers how many
// were answered.
import net from "node:net";

interface Order {
  readonly port: number;
  readonly ms: number;
}

const request = "GET /livez HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
const atOnce = 16;

process.on("message", async ({ port, ms }: Order) => {
  const untilMs = performance.now() + ms;
  let answered = 0;
  const stranger = async () => {
    while (performance.now() < untilMs) {
      const heard = await ask(port);
      if (!/^HTTP\/1\.1 (200|503)/.test(heard)) throw new Error(`a stranger heard ${heard}`);
      answered++;
    }
  };
  await Promise.all(Array.from({ length: atOnce }, stranger));
  process.send?.(answered);
});

function ask(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    let heard = "";
    const socket = net.connect({ port, host: "127.0.0.1", noDelay: true }, () => socket.write(request));
    socket.setEncoding("latin1").on("data", (chunk) => {
      heard += chunk;
    });
    socket.on("error", reject).on("close", () => resolve(heard));
  });
}
