import type net from "node:net";
import tls from "node:tls";
import { type TlsIdentity, tlsVersionMin } from "../../config/tls-files.ts";
import type { Guard } from "./guard.ts";

/**
 * Bytes that a connection may use for TLS itself: the handshake, and some key updates. Above this, TLS may use three
 * times as many bytes as the requests do. Without this bound, a client that sends only key updates would keep the
 * processor busy, and those that it does not read the answers of would fill the memory: OpenSSL has no limit for them.
 */
const overheadBytesMin = 65_536;
const overheadRatioMax = 3;

export interface TlsHandshakesOptions {
  readonly identity: TlsIdentity;
  readonly guard: Guard;
  /** Called after the handshake of `connection`. What is read from and written to `secured` is not encrypted. */
  readonly onSecured: (connection: net.Socket, secured: net.Socket) => void;
}

/** TLS by Node's own server. It never listens: it gets connections that `OnePort` has accepted. */
export class TlsHandshakes {
  readonly #server: tls.Server;
  /** Those whose handshake is complete. */
  readonly #secured = new Map<net.Socket, net.Socket>();

  constructor({ identity, guard, onSecured }: TlsHandshakesOptions) {
    this.#server = tls.createServer({ ...contextOf(identity), ALPNProtocols: ["h2", "http/1.1"] });
    guard.watch(this.#server);
    this.#server.on("secureConnection", (secured) => {
      guard.watch(secured);
      secured.on("error", () => secured.destroy());
      const connection = connectionOf(secured);
      this.#secured.set(connection, secured);
      connection.on("close", () => this.#secured.delete(connection));
      onSecured(connection, secured);
    });
    // After some errors, Node leaves the socket open.
    this.#server.on("tlsClientError", (_, socket) => socket.destroy());
  }

  /** `OnePort` bounds the time that a handshake may take. */
  start(connection: net.Socket): void {
    this.#server.emit("connection", connection);
  }

  /** For handshakes from now on. Connections that are open keep their keys. */
  setIdentity(identity: TlsIdentity): void {
    this.#server.setSecureContext(contextOf(identity));
  }

  /** Closes connections that send little but messages of TLS itself. */
  sweep(): void {
    for (const [connection, secured] of this.#secured) {
      const overheadBytes = connection.bytesRead - secured.bytesRead;
      if (overheadBytes > overheadBytesMin + overheadRatioMax * secured.bytesRead) connection.destroy();
    }
  }
}

function contextOf({ certPem, keyPem }: TlsIdentity): tls.SecureContextOptions {
  return { cert: certPem, key: keyPem.reveal(), minVersion: tlsVersionMin };
}

/** There is no public way from a TLS socket to the connection below it. */
function connectionOf(secured: tls.TLSSocket): net.Socket {
  const { _parent: connection } = secured as unknown as { readonly _parent: net.Socket | undefined };
  if (connection === undefined) throw new Error("node:tls keeps its connections in an unknown way");
  return connection;
}
