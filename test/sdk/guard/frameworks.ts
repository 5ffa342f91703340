// One API in each framework, with a route that answers what is known of the verified key.
import { once } from "node:events";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import express from "express";
import fastify from "fastify";
import { Hono } from "hono";
import { Health } from "../../../gen/health/v1/health_pb.js";
import { latchkey, protect as protectConnect } from "../../../src/sdk/guard/connect.ts";
import { protect as protectExpress } from "../../../src/sdk/guard/express.ts";
import { protect as protectFastify } from "../../../src/sdk/guard/fastify.ts";
import type { Asked, VerifiedKey, Verifier } from "../../../src/sdk/guard/guard.ts";
import { protect as protectHono } from "../../../src/sdk/guard/hono.ts";
import { protect as protectWeb } from "../../../src/sdk/guard/web.ts";
import { atTestEnd } from "../../support/test-end.ts";

/** Makes a request to the route. */
export type Ask = (headers?: Record<string, string>) => Promise<Answer>;

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: unknown;
}

/** Options that every framework takes. */
export interface CommonOptions extends Asked {
  readonly log?: (message: string, cause: unknown) => void;
  readonly keyOf?: () => string;
  /** Names the header that holds the key. */
  readonly keyHeader?: string;
  /** Names the header that holds the end user's address. */
  readonly ipHeader?: string;
  readonly bodyOf?: (refusal: { readonly code: string }) => unknown;
  /** Called by the route, which a refused request must not reach. */
  readonly onPassed?: () => void;
}

export const frameworks: Readonly<Record<string, (client: Verifier, options: CommonOptions) => Promise<Ask>>> = {
  async express(client, { keyHeader, ipHeader, onPassed, ...options }) {
    const app = express();
    const guard = protectExpress<express.Request>(client, {
      ...options,
      ...(keyHeader && { keyOf: (request) => request.get(keyHeader) }),
      ...(ipHeader && { perRequest: (request) => ({ ip: request.get(ipHeader) as string }) }),
    });
    app.get("/", guard, (request, response) => void response.json(passed(request.latchkey, onPassed)));
    return askAt(await listen(app));
  },
  async fastify(client, { keyHeader, ipHeader, onPassed, ...options }) {
    const app = fastify();
    const onRequest = protectFastify(client, {
      ...options,
      ...(keyHeader && { keyOf: (request) => String(request.headers[keyHeader] ?? "") }),
      ...(ipHeader && { perRequest: (request) => ({ ip: String(request.headers[ipHeader]) }) }),
    });
    app.get("/", { onRequest }, async (request) => passed(request.latchkey, onPassed));
    atTestEnd(() => app.close());
    return askAt(await app.listen({ port: 0, host: "127.0.0.1" }));
  },
  async hono(client, { keyHeader, ipHeader, onPassed, ...options }) {
    const guard = protectHono(client, {
      ...options,
      ...(keyHeader && { keyOf: (context) => context.req.header(keyHeader) }),
      ...(ipHeader && { perRequest: (context) => ({ ip: context.req.header(ipHeader) as string }) }),
    });
    const app = new Hono().get("/", guard, (context) => context.json(passed(context.get("latchkey"), onPassed)));
    return async (headers = {}) => answerOf(await app.request("/", { headers }));
  },
  async web(client, { keyHeader, ipHeader, onPassed, ...options }) {
    const handler = protectWeb(
      client,
      {
        ...options,
        ...(keyHeader && { keyOf: (request) => request.headers.get(keyHeader) ?? undefined }),
        ...(ipHeader && { perRequest: (request) => ({ ip: request.headers.get(ipHeader) as string }) }),
      },
      (_, key, more: string) => Response.json({ ...passed(key, onPassed), more }),
    );
    return async (headers = {}) => {
      const answer = await answerOf(await handler(new Request("http://api.test/", { headers }), "rest"));
      const { more, ...body } = answer.body as { more?: string };
      if (answer.status === 200 && more !== "rest") throw new Error("the rest of the arguments did not arrive");
      return { ...answer, body };
    };
  },
  async connect(client, { keyHeader, ipHeader, onPassed, bodyOf, ...options }) {
    const interceptor = protectConnect(client, {
      ...options,
      ...(keyHeader && { keyOf: ({ header }) => header.get(keyHeader) ?? undefined }),
      ...(ipHeader && { perRequest: ({ header }) => ({ ip: header.get(ipHeader) as string }) }),
    });
    const listener = connectNodeAdapter({
      interceptors: [interceptor],
      routes: (router) =>
        router.service(Health, {
          check(_, context) {
            context.responseHeader.set("x-known", JSON.stringify(passed(context.values.get(latchkey), onPassed)));
            return { status: 1 };
          },
        }),
    });
    const url = `${await listen(listener)}/${Health.typeName}/Check`;
    return async (headers = {}) => {
      const init = { method: "POST", headers: { "content-type": "application/json", ...headers }, body: "{}" };
      const answer = await answerOf(await fetch(url, init));
      if (answer.status === 200) return { ...answer, body: JSON.parse(answer.headers.get("x-known") ?? "null") };
      return { ...answer, body: undefined };
    };
  },
};

/** What the route answers. */
function passed(key: VerifiedKey | undefined, onPassed: CommonOptions["onPassed"]) {
  onPassed?.();
  return { keyId: key?.keyId, ownerId: key?.ownerId, degraded: key?.degraded };
}

async function listen(listener: RequestListener): Promise<string> {
  const server: Server = createServer(listener);
  atTestEnd(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function askAt(url: string): Ask {
  return async (headers = {}) => answerOf(await fetch(url, { headers }));
}

async function answerOf(response: Response): Promise<Answer> {
  return { status: response.status, headers: response.headers, body: await response.json() };
}
