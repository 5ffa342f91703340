import net from "node:net";
import { atTestEnd } from "./test-end.ts";

/** What happens to bytes on their way from the server to the client. */
export type Fault = "pass" | "cut" | "stall";

/** What a cut network does not carry: bytes from the client, from the server, or both. */
export type Held = "requests" | "answers" | "both";

/**
 * A TCP link that can be broken on purpose: it cuts connections when a reply comes (the request was executed, but its
 * outcome stays unknown), delays, stalls, refuses, falls silent, or leads elsewhere.
 */
export class FaultyProxy {
  /** Where new connections lead. */
  targetPort: number;
  /** Asked for every chunk the server sends. */
  onReply: (connection: { bytesFromServer: number }) => Fault = () => "pass";
  /** Time that each chunk takes, in both directions. */
  delayMs = 0;
  /** Whether new connections are turned away. */
  refusing = false;
  cuts = 0;
  /** Connections that the client has reset. */
  resets = 0;
  readonly #server: net.Server;
  #silent = false;
  #holding: Held | undefined;
  readonly #open = new Set<Connection>();

  private constructor(targetPort: number) {
    this.targetPort = targetPort;
    this.#server = net.createServer({ noDelay: true }, (client) => this.#join(client));
  }

  /** Closed at the end of the test. A program that is not a test passes its own `atEnd`. */
  static async start(targetPort: number, atEnd: (undo: () => void) => void = atTestEnd): Promise<FaultyProxy> {
    const proxy = new FaultyProxy(targetPort);
    await new Promise<void>((resolve) => proxy.#server.listen(0, "127.0.0.1", resolve));
    atEnd(() => proxy.close());
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as net.AddressInfo).port;
  }

  /** While true, bytes in both directions are lost and nothing is closed. Then connections that lost bytes are cut. */
  get silent(): boolean {
    return this.#silent;
  }

  set silent(silent: boolean) {
    this.#silent = silent;
    if (!silent) for (const { lost, cut } of this.#open) if (lost) cut();
  }

  /**
   * While set, a network that is cut, one way or both: bytes stay where they were sent, and nothing is closed. Then they
   * arrive after all, also those of a connection that was closed meanwhile; those of one that was reset do not.
   */
  get holding(): Held | undefined {
    return this.#holding;
  }

  set holding(holding: Held | undefined) {
    this.#holding = holding;
    if (holding !== undefined) return;
    for (const { held, lost, cut } of this.#open) {
      for (const arrive of held.splice(0)) arrive();
      if (lost) cut();
    }
  }

  /** Breaks every connection there is. */
  cutAll(): void {
    for (const { cut } of this.#open) cut();
  }

  /** Lets every connection there is lose all bytes from now on, without closing any; new ones are as ever. */
  abandonAll(): void {
    for (const connection of this.#open) connection.abandoned = true;
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
    // A connection takes both ways to open: the server does not see one that is opened while a way is cut.
    const isCut = this.#silent || this.#holding !== undefined;
    const server = isCut ? new net.Socket() : net.connect({ host: "127.0.0.1", port: this.targetPort, noDelay: true });
    const cut = () => {
      client.destroy();
      server.destroy();
      this.#open.delete(connection);
    };
    const connection: Connection = { bytesFromServer: 0, lost: isCut, abandoned: false, held: [], cut };
    let stalled = false;
    this.#open.add(connection);
    const holds = (way: Exclude<Held, "both">) => this.#holding === "both" || this.#holding === way;
    const carry = (way: Exclude<Held, "both">, act: () => void) => {
      if (this.#silent || connection.abandoned) connection.lost = true;
      else if (holds(way)) connection.held.push(act);
      else act();
    };
    client.on("error", ({ code }: NodeJS.ErrnoException) => {
      if (code !== "ECONNRESET") return;
      this.resets++;
      connection.held.length = 0;
    });
    client.on("end", () => holds("requests") && connection.held.push(() => server.end()));
    const passRequest = (chunk: Buffer) => this.#later(() => carry("requests", () => server.write(chunk)));
    const passAnswer = (chunk: Buffer) => this.#later(() => carry("answers", () => client.write(chunk)));
    const isPoliteEnd = (hadError: boolean) => holds("requests") && !hadError;
    client.on("close", (hadError) => isPoliteEnd(hadError) || carry("requests", cut));
    server.on("error", () => {}).on("close", () => carry("answers", cut));
    client.on("data", (chunk) => carry("requests", () => passRequest(chunk)));
    const answer = (chunk: Buffer) => {
      connection.bytesFromServer += chunk.length;
      if (stalled) return;
      const fault = this.onReply(connection);
      if (fault === "cut") {
        this.cuts++;
        cut();
      } else if (fault === "stall") {
        stalled = true;
      } else {
        passAnswer(chunk);
      }
    };
    server.on("data", (chunk) => carry("answers", () => answer(chunk)));
  }

  /** Timers of one duration fire in the order they were set, so chunks stay in order while the delay stays the same. */
  #later(pass: () => void): void {
    if (this.delayMs === 0) pass();
    else setTimeout(pass, this.delayMs);
  }
}

interface Connection {
  bytesFromServer: number;
  /** Whether it lost bytes, or its end, in silence. */
  lost: boolean;
  abandoned: boolean;
  /** What happens when a cut network works again, in order. */
  readonly held: (() => void)[];
  readonly cut: () => void;
}
