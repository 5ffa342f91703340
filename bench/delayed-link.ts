import net from "node:net";

/** A TCP link with the latency of one between regions: bytes arrive so much later. */
export class DelayedLink {
  readonly #server: net.Server;
  readonly #open = new Set<net.Socket>();

  private constructor(targetPort: number, roundTripMs: number) {
    // Timers count whole milliseconds: an odd one goes to the way back.
    const thereMs = Math.floor(roundTripMs / 2);
    this.#server = net.createServer({ noDelay: true }, (near) => {
      const far = net.connect({ host: "127.0.0.1", port: targetPort, noDelay: true });
      this.#join(near, far, thereMs);
      this.#join(far, near, roundTripMs - thereMs);
    });
  }

  static async start(targetPort: number, roundTripMs: number): Promise<DelayedLink> {
    const link = new DelayedLink(targetPort, roundTripMs);
    await new Promise<void>((resolve) => link.#server.listen(0, "127.0.0.1", resolve));
    return link;
  }

  get port(): number {
    return (this.#server.address() as net.AddressInfo).port;
  }

  close(): void {
    this.#server.close();
    for (const socket of this.#open) socket.destroy();
  }

  /** Timers of one duration fire in the order in which they were set, so bytes stay in order. */
  #join(from: net.Socket, to: net.Socket, delayMs: number): void {
    this.#open.add(from);
    const later = (act: () => void) => (delayMs === 0 ? act() : setTimeout(act, delayMs));
    from.on("data", (chunk) => later(() => to.write(chunk)));
    from.on("error", () => {});
    from.on("close", () => {
      this.#open.delete(from);
      later(() => to.destroy());
    });
  }
}
