import { createHash } from "node:crypto";
import http from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { LatchkeyClient } from "../../gen/latchkey/v1/client.ts";
import { type LatchkeyProcess, startLatchkey } from "./latchkey-process.ts";
import type { ProxyName } from "./proxy-binaries.ts";
import { rawClient } from "./raw-client.ts";
import { tempFolder } from "./temp-folder.ts";
import { atTestEnd } from "./test-end.ts";
import { startTestProxy } from "./test-proxies.ts";
import { testRootKey } from "./test-root-key.ts";

/** What the API behind the proxy was sent. */
export interface Received {
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: string;
  readonly trailers: NodeJS.Dict<string>;
}

export interface GuardedApi {
  readonly proxyPort: number;
  readonly latchkey: LatchkeyProcess;
  readonly client: LatchkeyClient;
  /** Requests that came through, in order. */
  readonly received: Received[];
  /**
   * The next answer of a replica is lost after its decision: as if it had been killed in between, or cut off by a network that
   * tells nobody.
   */
  loseNextAnswer(how: Loss): void;
  /** Answers that were lost. */
  readonly lost: () => number;
  /** Whether each replica was asked: the proxy may keep a connection to each then. */
  readonly allAsked: () => boolean;
}

export type Loss = "killed" | "cut off";

export interface GuardedApiOptions {
  /** For controls: a piece of the configuration, and what takes its place. */
  readonly edit?: readonly [documented: string, broken: string] | undefined;
  /** The proxy asks Latchkey itself, so that no answer can be lost in between. */
  readonly isDirect?: boolean;
  /** One that others use too, as `startGuardingLatchkey` starts it. Absent: its own. */
  readonly latchkey?: LatchkeyProcess;
}

/** Latchkey where verifications need a root key. In one process, which counts local limits exactly. */
export function startGuardingLatchkey(
  environment: Record<string, string> = {},
  atEnd: (undo: () => void) => void = atTestEnd,
): Promise<LatchkeyProcess> {
  const settings = {
    LATCHKEY_DATA_DIR: tempFolder(atEnd),
    LATCHKEY_ROOT_KEY: testRootKey,
    LATCHKEY_VERIFY_AUTH: "required",
    ...environment,
  };
  return startLatchkey(settings, undefined, atEnd);
}

/**
 * A proxy in front of a small API, with the documented configuration. It asks two replicas, which are two ways to one process
 * of Latchkey.
 */
export async function startGuardedApi(name: ProxyName, options: GuardedApiOptions = {}): Promise<GuardedApi> {
  const { edit, isDirect = false, latchkey = await startGuardingLatchkey() } = options;
  const { api, received } = await startApi();
  let toBeLost: Loss | undefined;
  let lost = 0;
  const asked = new Set<number>();
  const replica = (index: number) =>
    listen(async (req, res) => {
      asked.add(index);
      const answer = await passOn(req, latchkey.baseUrl);
      // Not of a health check.
      if (toBeLost !== undefined && req.url?.startsWith("/v1/authz")) {
        if (toBeLost === "killed") req.socket.destroy();
        toBeLost = undefined;
        lost++;
        return;
      }
      res.writeHead(answer.statusCode ?? 0, answer.headers).end(await textOf(answer));
    });
  const { host } = new URL(latchkey.baseUrl);
  const replicas = isDirect ? ([host, host] as const) : ([await replica(0), await replica(1)] as const);
  const proxy = await startTestProxy(name, { latchkey: replicas, api, edit });
  return {
    proxyPort: proxy.port,
    latchkey,
    client: rawClient({ baseUrl: latchkey.baseUrl, rootKey: testRootKey }),
    received,
    loseNextAnswer(how) {
      toBeLost = how;
    },
    lost: () => lost,
    allAsked: () => asked.size === replicas.length,
  };
}

/** What the API says of a limit of its own, at `/own-limit`. */
export const ownLimit = '"own";r=1;t=1';

/** The API behind a proxy. It agrees to every upgrade. */
export async function startApi(): Promise<{ api: string; received: Received[] }> {
  const received: Received[] = [];
  const receive = ({ method, url, headers, trailers }: http.IncomingMessage, body: string) =>
    received.push({ method, url, headers, body, trailers });
  const handle = async (req: http.IncomingMessage, res: http.ServerResponse) => {
    const body = await textOf(req);
    receive(req, body);
    if (req.url === "/own-limit") res.setHeader("ratelimit", ownLimit);
    res.end("served");
  };
  const api = await listen(handle, (req, socket) => {
    receive(req, "");
    socket.write(switchProtocols(req.headers));
  });
  return { api, received };
}

/** As of RFC 6455 for WebSockets, which proxies check. */
function switchProtocols({ upgrade, "sec-websocket-key": key }: http.IncomingHttpHeaders): string {
  const accept = createHash("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");
  const lines = [`Upgrade: ${upgrade}`, "Connection: Upgrade", `Sec-WebSocket-Accept: ${accept}`];
  return `HTTP/1.1 101 Switching Protocols\r\n${lines.join("\r\n")}\r\n\r\n`;
}

/** Answers the address. */
async function listen(
  handle: (req: http.IncomingMessage, res: http.ServerResponse) => Promise<void>,
  onUpgrade?: (req: http.IncomingMessage, socket: Socket) => void,
): Promise<string> {
  const server = http.createServer((req, res) => {
    handle(req, res).catch(() => res.destroy());
  });
  if (onUpgrade) {
    server.on("upgrade", (req, socket: Socket) => {
      atTestEnd(() => socket.destroy());
      socket.on("error", () => {});
      onUpgrade(req, socket);
    });
  }
  // Longer than a test: it is the proxy that closes a connection it does not need.
  server.keepAliveTimeout = 600_000;
  atTestEnd(() => {
    server.close();
    server.closeAllConnections();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function passOn({ method, url, headers }: http.IncomingMessage, baseUrl: string): Promise<http.IncomingMessage> {
  return new Promise((resolve, reject) => {
    http
      .request(baseUrl + url, { method, headers }, resolve)
      .on("error", reject)
      .end();
  });
}

async function textOf(message: http.IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}
