// Callers of counted keys in a process of their own: `fork`ed with a message of groups, answers what became of each.
import net from "node:net";

export interface Group {
  readonly connections: number;
  readonly keys: readonly string[];
  /** How long a caller stays away after a 503. */
  readonly pauseMs: number;
}

export interface Order {
  readonly port: number;
  readonly ms: number;
  readonly groups: readonly Group[];
}

export interface Outcome {
  readonly served: number;
  readonly shed: number;
  /** Of those served. */
  readonly p50Ms: number;
  readonly p99Ms: number;
}

process.on("message", async ({ port, ms, groups }: Order) => {
  const untilMs = performance.now() + ms;
  process.send?.(await Promise.all(groups.map((group) => callAll(port, untilMs, group))));
});

async function callAll(port: number, untilMs: number, { connections, keys, pauseMs }: Group): Promise<Outcome> {
  const requests = keys.map(requestOf);
  const latencies: number[] = [];
  let next = 0;
  let shed = 0;
  const caller = async () => {
    const connection = new Connection(port);
    while (performance.now() < untilMs) {
      const startedMs = performance.now();
      const status = await connection.ask(requests[next++ % requests.length] as Buffer);
      if (status === 200) latencies.push(performance.now() - startedMs);
      else if (status === 503) shed++;
      else throw new Error(`a caller was answered ${status}`);
      if (status === 503 && pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
    connection.close();
  };
  await Promise.all(Array.from({ length: connections }, caller));
  latencies.sort((a, b) => a - b);
  const quantile = (share: number) => latencies[Math.floor(latencies.length * share)] ?? Number.NaN;
  return { served: latencies.length, shed, p50Ms: quantile(0.5), p99Ms: quantile(0.99) };
}

function requestOf(key: string): Buffer {
  const body = JSON.stringify({ key });
  const head = "POST /v1/keys.verifyKey HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n";
  return Buffer.from(`${head}content-length: ${body.length}\r\n\r\n${body}`);
}

/** As little as a client can do: an answer is whole when it ends as answers do. */
class Connection {
  readonly #socket: net.Socket;
  #heard = "";
  #answered: (status: number) => void = () => {};

  constructor(port: number) {
    this.#socket = net.connect({ port, host: "127.0.0.1", noDelay: true });
    this.#socket.setEncoding("latin1").on("data", (chunk: string) => {
      this.#heard += chunk;
      if (!this.#heard.endsWith("}")) return;
      const status = Number(this.#heard.slice(9, 12));
      this.#heard = "";
      this.#answered(status);
    });
  }

  ask(request: Buffer): Promise<number> {
    return new Promise((resolve) => {
      this.#answered = resolve;
      this.#socket.write(request);
    });
  }

  close(): void {
    this.#socket.destroy();
  }
}
