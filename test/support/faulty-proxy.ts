import net from "node:net";
import { onTestFinished } from "vitest";

/** What happens to bytes on their way from the server to the client. */
export type Fault = "pass" | "cut" | "stall";

/**
 * A TCP link that can be broken on purpose: it cuts connections when a reply comes (so that the request has been acted
 * upon and nobody learns of it), delays, stalls, refuses, or leads elsewhere.
 */
export class FaultyProxy {
  /** Where new connections lead. */
  targetPort: number;
  /** Asked for every chunk the server sends. */
  onReply: (connection: { bytesFromServer: number }) => Fault = () => "pass";
  /** Time each chunk takes, either way. */
  delayMs = 0;
  /** Whether new connections are turned away. */
  refusing = false;
  cuts = 0;
  readonly #server: net.Server;
  readonly #open = new Set<() => void>();

  private constructor(targetPort: number) {
    this.targetPort = targetPort;
    this.#server = net.createServer({ noDelay: true }, (client) => this.#join(client));
  }

  static async start(targetPort: number): Promise<FaultyProxy> {
    const proxy = new FaultyProxy(targetPort);
    await new Promise<void>((resolve) => proxy.#server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => proxy.close());
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as net.AddressInfo).port;
  }

  /** Breaks every connection there is. */
  cutAll(): void {
    for (const cut of this.#open) cut();
  }

  close(): void {
    this.cutAll();
    this.#server.close();
  }

  #join(client: net.Socket): void {
    if (this.refusing) {
      client.destroy();
      return;
    }
    const server = net.connect({ host: "127.0.0.1", port: this.targetPort, noDelay: true });
    const connection = { bytesFromServer: 0 };
    let stalled = false;
    const cut = () => {
      client.destroy();
      server.destroy();
      this.#open.delete(cut);
    };
    this.#open.add(cut);
    for (const socket of [client, server]) socket.on("error", cut).on("close", cut);
    client.on("data", (chunk) => this.#later(() => server.write(chunk)));
    server.on("data", (chunk) => {
      connection.bytesFromServer += chunk.length;
      if (stalled) return;
      const fault = this.onReply(connection);
      if (fault === "cut") {
        this.cuts++;
        cut();
      } else if (fault === "stall") {
        stalled = true;
      } else {
        this.#later(() => client.write(chunk));
      }
    });
  }

  /** Timers of one duration fire in the order they were set, so chunks stay in order while the delay stays the same. */
  #later(pass: () => void): void {
    if (this.delayMs === 0) pass();
    else setTimeout(pass, this.delayMs);
  }
}
