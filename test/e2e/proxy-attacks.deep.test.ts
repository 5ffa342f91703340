import { once } from "node:events";
import http2 from "node:http2";
import net from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type GuardedApi, startGuardedApi, startGuardingLatchkey } from "../support/guarded-api.ts";
import { guardedApi } from "../support/keys-by-code.ts";
import type { LatchkeyProcess } from "../support/latchkey-process.ts";
import { type ProxyName, proxyNames } from "../support/proxy-binaries.ts";
import { atTestEnd } from "../support/test-end.ts";
import { hasProxy } from "../support/test-proxies.ts";

/* End users who try to pass the documented proxies without a key, or as somebody else. */

interface Attack {
  readonly name: string;
  /** The lines of a request after `Host`. The key is valid. */
  readonly request: (key: string) => { readonly method: string; readonly lines: readonly string[] };
  readonly hasWorked: (outcome: Outcome) => boolean;
  /** What prevents it, and what takes its place to show that it would work. Absent: the proxy is safe by itself. */
  readonly controls: Partial<Record<ProxyName, readonly [documented: string, broken: string]>>;
}

interface Outcome extends Pick<GuardedApi, "received"> {
  readonly status: number;
}

const webSocket = ["Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="];
const preflight = ["Origin: http://app.test", "Access-Control-Request-Method: PUT"];

/** Lets every OPTIONS pass unasked. */
const everyOptions: Attack["controls"] = {
  nginx: ["if ($is_preflight)", "if ($request_method = OPTIONS)"],
  caddy: [
    "{\n\t\t\tmethod OPTIONS\n\t\t\theader Origin *\n\t\t\theader Access-Control-Request-Method *\n\t\t\theader !Upgrade\n\t\t}",
    "method OPTIONS",
  ],
  haproxy: [" { req.hdr(origin) -m found } { req.hdr(access-control-request-method) -m found } !websocket", ""],
};

/** Passes Connection and Upgrade on as they are. */
const everyConnection: Attack["controls"] = {
  caddy: [
    "request_header -Connection\n\t\trequest_header @websocket Connection Upgrade\n\t\trequest_header @websocket Upgrade websocket",
    "",
  ],
  haproxy: [
    [
      "    http-request del-header connection",
      "    http-request set-header connection upgrade if websocket",
      "    http-request set-header upgrade websocket if websocket",
      "    http-request del-header upgrade unless websocket",
    ].join("\n"),
    "",
  ],
};

const isForged = ({ received }: Outcome) => JSON.stringify(received).includes("forged");

const attacks: readonly Attack[] = [
  {
    name: "an OPTIONS that is no preflight",
    request: () => ({ method: "OPTIONS", lines: ["Origin: http://app.test"] }),
    hasWorked: ({ received }) => received.length > 0,
    controls: everyOptions,
  },
  {
    name: "a tunnel by OPTIONS",
    request: () => ({ method: "OPTIONS", lines: ["Connection: Upgrade", ...webSocket] }),
    hasWorked: ({ status }) => status === 101,
    // nginx passes no Upgrade on.
    controls: { caddy: everyOptions.caddy, haproxy: everyOptions.haproxy } as Attack["controls"],
  },
  {
    name: "a tunnel by a preflight",
    request: () => ({ method: "OPTIONS", lines: [...preflight, "Connection: Upgrade", ...webSocket] }),
    hasWorked: ({ status }) => status === 101,
    controls: { caddy: ["header !Upgrade", ""], haproxy: [" !websocket", ""] },
  },
  {
    name: "a tunnel for further requests",
    request: (key) => ({
      method: "GET",
      lines: [`X-API-Key: ${key}`, "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk"],
    }),
    hasWorked: ({ status }) => status === 101,
    controls: everyConnection,
  },
  {
    name: "a second upgrade beside a WebSocket",
    request: (key) => ({
      method: "GET",
      lines: [`X-API-Key: ${key}`, "Connection: Upgrade", "Upgrade: h2c", ...webSocket],
    }),
    hasWorked: ({ received }) => received.some(({ headers }) => headers.upgrade?.includes("h2c")),
    controls: {
      caddy: ["request_header @websocket Upgrade websocket", ""],
      haproxy: ["http-request set-header upgrade websocket if websocket", ""],
    },
  },
  {
    name: "a Connection that names our headers",
    request: (key) => ({ method: "GET", lines: [`X-API-Key: ${key}`, "Connection: X-Latchkey-Owner-Id"] }),
    hasWorked: ({ received }) =>
      received.some(
        ({ headers }) => headers["x-latchkey-owner-id"] !== "owner" || /latchkey/i.test(headers.connection ?? ""),
      ),
    controls: everyConnection,
  },
  {
    name: "our headers in other spellings",
    request: (key) => ({
      method: "GET",
      lines: [
        `X-API-Key: ${key}`,
        "X_Latchkey_Owner_Id: forged",
        "x-latchkey_owner-id: forged",
        "X.Latchkey.Owner.Id: forged",
      ],
    }),
    hasWorked: isForged,
    controls: {
      nginx: ["underscores_in_headers off;", "underscores_in_headers on;"],
      caddy: ["-*Latchkey*", "-X-Latchkey-*"],
      haproxy: ["del-header latchkey -m sub", "del-header x-latchkey- -m beg"],
    },
  },
  ...["", "Trailer: X-Latchkey-Owner-Id"].map(
    (announced): Attack => ({
      name: announced ? "our headers as announced trailers" : "our headers as trailers",
      request: (key) => ({
        method: "POST",
        lines: [
          `X-API-Key: ${key}`,
          ...(announced ? [announced] : []),
          "Transfer-Encoding: chunked",
          "",
          "4",
          "body",
          "0",
          "X-Latchkey-Owner-Id: forged",
        ],
      }),
      hasWorked: isForged,
      controls: { haproxy: ["http-request return status 411 if { req.hdr(transfer-encoding) -m found }", ""] },
    }),
  ),
];

let latchkey: LatchkeyProcess;
const endings: (() => unknown)[] = [];
beforeAll(async () => {
  latchkey = await startGuardingLatchkey({}, (undo) => void endings.unshift(undo));
});
afterAll(() => {
  for (const end of endings) end();
});

/** The status of the first answer. */
async function say(port: number, method: string, lines: readonly string[]): Promise<number> {
  const socket = net.connect(port, "127.0.0.1").on("error", () => {});
  atTestEnd(() => socket.destroy());
  socket.write([`${method} / HTTP/1.1`, `Host: 127.0.0.1:${port}`, ...lines, "", ""].join("\r\n"));
  const [answer] = (await once(socket, "data")) as [Buffer];
  return Number(/^HTTP\/1.1 (\d+)/.exec(answer.toString())?.[1]);
}

async function startAttacked(name: ProxyName, edit?: readonly [string, string]) {
  const { proxyPort, client, received } = await startGuardedApi(name, { latchkey, edit });
  const { key } = await client.keys.createKey({ apiId: guardedApi, permissions: ["docs.read"], ownerId: "owner" });
  return { proxyPort, key, received };
}

async function attack(name: ProxyName, { request }: Attack, edit?: readonly [string, string]): Promise<Outcome> {
  const { proxyPort, key, received } = await startAttacked(name, edit);
  const { method, lines } = request(key);
  return { status: await say(proxyPort, method, lines), received };
}

for (const name of proxyNames) {
  describe.runIf(hasProxy(name))(`${name}, as documented, does not fall for`, () => {
    it.each(attacks)("$name", async (attempt) => {
      const outcome = await attack(name, attempt);
      expect(attempt.hasWorked(outcome), JSON.stringify(outcome)).toBe(false);
    });

    const controls = attacks.flatMap((attempt) => {
      const edit = attempt.controls[name];
      return edit ? [{ attempt, edit, title: attempt.name }] : [];
    });
    it.each(controls)("$title, and would without what prevents it", async ({ attempt, edit }) => {
      const outcome = await attack(name, attempt, edit);
      expect(attempt.hasWorked(outcome), JSON.stringify(outcome)).toBe(true);
    });
  });
}

describe.runIf(hasProxy("haproxy"))("haproxy over HTTP/2", () => {
  const setLength =
    "http-request set-header content-length 0 if { fc_http_major gt 1 } !{ req.hdr(content-length) -m found }";

  it.each(["", "body"])("passes no trailers on, after the body '%s'", async (body) => {
    expect(await trailersAfter(body)).toEqual([]);
    expect(await trailersAfter(body, [setLength, ""])).toEqual(["forged"]);
  });

  async function trailersAfter(body: string, edit?: readonly [string, string]) {
    const { proxyPort, key, received } = await startAttacked("haproxy", edit);
    const session = http2.connect(`http://127.0.0.1:${proxyPort}`);
    atTestEnd(() => session.destroy());
    const request = { ":method": "POST", ":path": "/", "x-api-key": key };
    const stream = session.request(request, { waitForTrailers: true, endStream: false });
    stream.on("wantTrailers", () => stream.sendTrailers({ "x-latchkey-owner-id": "forged" }));
    stream.end(body);
    await once(stream, "response");
    return received.flatMap(({ trailers }) => Object.values(trailers));
  }
});

const withWebSockets = (["caddy", "haproxy"] as const).filter(hasProxy);
it.each(withWebSockets)("%s opens a WebSocket for a valid key, and only for one", async (name) => {
  const { proxyPort, key, received } = await startAttacked(name);
  const open = (shown: string) =>
    say(proxyPort, "GET", [`X-API-Key: ${shown}`, "Connection: keep-alive, Upgrade", ...webSocket]);
  expect(await open("wrong")).toBe(401);
  expect(received).toEqual([]);
  expect(await open(key)).toBe(101);
  expect(received).toMatchObject([{ headers: { upgrade: "websocket", "x-latchkey-owner-id": "owner" } }]);
});
