// A load of its own process: `fork`ed with a message {port, bodies, connections, ms}, answers how many were served, and how many got another status than 200.
import http from "node:http";

interface Order {
  readonly port: number;
  readonly bodies: readonly string[];
  readonly connections: number;
  readonly ms: number;
}

const agent = new http.Agent({ keepAlive: true, maxSockets: 1000 });

process.on("message", async ({ port, bodies, connections, ms }: Order) => {
  const untilMs = performance.now() + ms;
  let next = 0;
  let served = 0;
  let refused = 0;
  const connection = async () => {
    while (performance.now() < untilMs) {
      const body = bodies[next++ % bodies.length] as string;
      if ((await post(port, body)) === 200) served++;
      else refused++;
    }
  };
  await Promise.all(Array.from({ length: connections }, connection));
  process.send?.({ served, refused });
});

function post(port: number, body: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
    const options = { agent, host: "127.0.0.1", port, path: "/v1/keys.verifyKey", method: "POST", headers };
    const req = http.request(options, (res) => {
      res.resume();
      res.on("end", () => resolve(res.statusCode ?? 0));
    });
    req.on("error", reject);
    req.end(body);
  });
}
