// Callers that make a connection for each request, in a process of their own: `fork`ed with a message, answers how many
// were served and how many were turned away.
import net from "node:net";

export interface StrangersOrder {
  readonly port: number;
  readonly ms: number;
}

const request = "GET /livez HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
const atOnce = 16;

process.on("message", async ({ port, ms }: StrangersOrder) => {
  const untilMs = performance.now() + ms;
  const counts = { served: 0, shed: 0 };
  const stranger = async () => {
    while (performance.now() < untilMs) {
      const heard = await ask(port);
      if (heard.startsWith("HTTP/1.1 200")) counts.served++;
      else if (heard.startsWith("HTTP/1.1 503")) counts.shed++;
      else throw new Error(`a stranger heard ${heard}`);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, stranger));
  process.send?.(counts);
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
