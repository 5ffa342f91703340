import { constants } from "node:crypto";
import type net from "node:net";
import tls from "node:tls";
import type { Clock } from "../../ambient/clock.ts";
import type { Secret } from "../../domain/secret.ts";
import type { Guard } from "./guard.ts";

/**
 * Bytes that a connection may use for TLS itself: the handshake, and some key updates. Above this, TLS may use three
 * times as many bytes as the requests do. Without this bound, a client that sends only key updates would keep the
 * processor busy, and those that it does not read the answers of would fill the memory: OpenSSL has no limit for them.
 */
const overheadBytesMin = 65_536;
const overheadRatioMax = 3;
/**
 * A handshake takes about 1 ms of processor time and 70 KB. So only some begin in one turn of the event loop, and only
 * some are under way at a time: all of these can have work for us in the same turn. The others wait.
 */
const startsPerTurn = 8;
const underWayMax = 512;
/** While others wait, a handshake that takes longer than this is given up for the next one. */
const hurriedMs = 500;
/** A first message in more bytes than this is none of TLS. */
const firstRecordMax = 5 + 16_384;
/** For TLS 1.2, only those with forward secrecy, where the server's only expensive step is the first. */
const ciphers = [
  "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256",
  "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384",
  "ECDHE-RSA-AES256-GCM-SHA384:ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305",
].join(":");

/** How a port speaks TLS. It may change while the port is open. */
export interface TlsOptions {
  /** In PEM form: the certificate with those that vouch for it, and its private key. */
  readonly cert: string;
  readonly key: Secret;
  readonly versionMin: "TLSv1.2" | "TLSv1.3";
  /** CA certificates in PEM: clients are asked for a certificate of theirs. A wrong one is refused. */
  readonly clientCa?: string | undefined;
  /** Whether clients without a certificate are refused too. */
  readonly isClientCertRequired?: boolean;
}

export interface TlsHandshakesOptions {
  readonly tls: TlsOptions;
  readonly guard: Guard;
  readonly clock: Pick<Clock, "monotonicMs">;
  /** Called after the handshake of `connection`. What is read from and written to `secured` is not encrypted. */
  readonly onSecured: (connection: net.Socket, secured: tls.TLSSocket) => void;
  readonly onFailed: () => void;
}

/** TLS by Node's own server. It never listens: it gets connections that `OnePort` has accepted. */
export class TlsHandshakes {
  readonly #options: Omit<TlsHandshakesOptions, "tls">;
  #server: tls.Server;
  /** Those whose handshake is complete. */
  readonly #secured = new Map<net.Socket, net.Socket>();
  /** Those that have sent their first message and wait for their turn, the oldest first. */
  readonly #waiting = new Set<net.Socket>();
  /** When each handshake that is under way has begun, the oldest first. */
  readonly #underWay = new Map<net.Socket, number>();
  #turn: NodeJS.Immediate | undefined;
  #giveUp: NodeJS.Timeout | undefined;

  constructor({ tls, ...options }: TlsHandshakesOptions) {
    this.#options = options;
    this.#server = this.#createServer(tls);
  }

  #createServer(options: TlsOptions): tls.Server {
    const { guard, onSecured, onFailed } = this.#options;
    const server = tls.createServer(serverOptionsOf(options));
    guard.watch(server);
    server.on("secureConnection", (secured) => {
      guard.watch(secured);
      secured.on("error", () => secured.destroy());
      const connection = connectionOf(secured);
      this.#leave(connection);
      // A wrong certificate, where clients may come without one.
      if (!secured.authorized && hasCertificate(secured)) {
        onFailed();
        connection.destroy();
        return;
      }
      this.#secured.set(connection, secured);
      connection.on("close", () => this.#secured.delete(connection));
      onSecured(connection, secured);
    });
    // After some errors, Node leaves the socket open.
    server.on("tlsClientError", (_, socket) => {
      onFailed();
      socket.destroy();
    });
    return server;
  }

  /**
   * Begins when the client's first message is there and it is this connection's turn: who sends a few bytes and stops
   * takes nobody's place. `OnePort` bounds the time that all this takes.
   */
  start(connection: net.Socket): void {
    let seen: Buffer = Buffer.alloc(0);
    const onData = (chunk: Buffer) => {
      seen = seen.length === 0 ? chunk : Buffer.concat([seen, chunk]);
      if (isBeginning(seen)) return;
      connection.off("data", onData);
      connection.pause();
      connection.unshift(seen);
      this.#waiting.add(connection);
      this.#scheduleTurn();
    };
    connection.on("data", onData);
    connection.on("close", () => this.#leave(connection));
  }

  /** For handshakes from now on. Connections that are open keep their keys. */
  set(options: TlsOptions): void {
    this.#server = this.#createServer(options);
  }

  /** Closes connections that send little but messages of TLS itself. */
  sweep(): void {
    for (const [connection, secured] of this.#secured) {
      const overheadBytes = connection.bytesRead - secured.bytesRead;
      if (overheadBytes > overheadBytesMin + overheadRatioMax * secured.bytesRead) connection.destroy();
    }
  }

  #leave(connection: net.Socket): void {
    this.#waiting.delete(connection);
    if (this.#underWay.delete(connection) && this.#waiting.size > 0) this.#scheduleTurn();
  }

  #scheduleTurn(): void {
    this.#turn ??= setImmediate(() => {
      this.#turn = undefined;
      this.#takeTurn();
    });
  }

  #takeTurn(): void {
    let starts = 0;
    for (const connection of this.#waiting) {
      if (starts === startsPerTurn) {
        this.#scheduleTurn();
        return;
      }
      if (this.#underWay.size >= underWayMax && !this.#giveUpOldest()) {
        this.#giveUp ??= setTimeout(() => this.#takeTurnLater(), hurriedMs / 2).unref();
        return;
      }
      starts++;
      this.#waiting.delete(connection);
      this.#underWay.set(connection, this.#options.clock.monotonicMs());
      this.#server.emit("connection", connection);
    }
  }

  /** Whether there was one that has taken too long. */
  #giveUpOldest(): boolean {
    const [oldest] = this.#underWay;
    if (oldest === undefined || this.#options.clock.monotonicMs() - oldest[1] < hurriedMs) return false;
    this.#underWay.delete(oldest[0]);
    // Node tells of it as of every handshake that fails.
    oldest[0].destroy();
    return true;
  }

  #takeTurnLater(): void {
    this.#giveUp = undefined;
    this.#takeTurn();
  }
}

/** Whether these bytes are the beginning of a first record of TLS, which says how long it is in its first five. */
function isBeginning(bytes: Buffer): boolean {
  const isHandshake = bytes[0] === 22;
  if (!isHandshake || bytes.length > firstRecordMax) return false;
  return bytes.length < 5 || bytes.length < 5 + bytes.readUInt16BE(3);
}

function serverOptionsOf(options: TlsOptions): tls.TlsOptions {
  const { cert, key, versionMin, clientCa, isClientCertRequired = false } = options;
  return {
    cert,
    key: key.reveal(),
    minVersion: versionMin,
    ALPNProtocols: ["h2", "http/1.1"],
    ciphers,
    // TLS 1.2 could be asked for further handshakes.
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
    ...(clientCa !== undefined && {
      ca: clientCa,
      requestCert: true,
      rejectUnauthorized: isClientCertRequired,
      // A resumed session is not asked for its certificate again, which may have expired since.
      secureOptions: constants.SSL_OP_NO_RENEGOTIATION | constants.SSL_OP_NO_TICKET,
    }),
  };
}

/**
 * Whether the client has shown a certificate that we trust. `authorized` alone is not enough: on some versions of Node it
 * is true of a resumed session without any certificate.
 */
export function hasTrustedCertificate(socket: object): boolean {
  return (socket as Partial<tls.TLSSocket>).authorized === true && hasCertificate(socket as tls.TLSSocket);
}

function hasCertificate(secured: tls.TLSSocket): boolean {
  return Object.keys(secured.getPeerCertificate()).length > 0;
}

/** There is no public way from a TLS socket to the connection below it. */
function connectionOf(secured: tls.TLSSocket): net.Socket {
  const { _parent: connection } = secured as unknown as { readonly _parent: net.Socket | undefined };
  if (connection === undefined) throw new Error("node:tls keeps its connections in an unknown way");
  return connection;
}
