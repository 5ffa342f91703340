import { describe, expect, it, onTestFinished } from "vitest";
import { Unavailable } from "../../src/domain/unavailable.ts";
import { authzPath } from "../../src/rpc/authz/authz-contract.ts";
import type { PublicApiDeps } from "../../src/server/public-api.ts";
import { composePublicApi } from "../support/compose-public-api.ts";
import { createRefusedKeys, guardedApi } from "../support/keys-by-code.ts";
import { rawClient } from "../support/raw-client.ts";
import { testRootKey } from "../support/test-root-key.ts";

/* What the OpenAPI document says of `/v1/authz`, held against what the service that serves it does. */

interface Schema {
  readonly enum?: readonly string[];
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly pattern?: string;
}
interface Parameter {
  readonly name: string;
  readonly in: "query" | "header";
  readonly schema: Schema;
}
interface Answer {
  readonly content?: object;
  readonly headers: Readonly<Record<string, { readonly required?: boolean; readonly schema: Schema }>>;
}
interface SecurityScheme {
  readonly type: string;
  readonly scheme?: string;
  readonly name?: string;
}
interface Operation {
  readonly security: readonly Readonly<Record<string, readonly string[]>>[];
  readonly parameters: readonly Parameter[];
  readonly responses: Readonly<Record<string, Answer>>;
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly securitySchemes: Readonly<Record<string, SecurityScheme>> };
}

async function start(override: Partial<PublicApiDeps> = {}) {
  const api = composePublicApi(() => override);
  const baseUrl = `http://127.0.0.1:${await api.onePort.listen(0, "127.0.0.1")}`;
  onTestFinished(() => api.onePort.close(0));
  const { paths, components } = (await (await fetch(`${baseUrl}/openapi.json`)).json()) as Document;
  const verbs = paths[authzPath] ?? {};
  const schemes = components.securitySchemes;
  const ask = (query: Record<string, string> = {}, headers: Record<string, string> = {}, method = "GET") =>
    fetch(`${baseUrl}${authzPath}?${new URLSearchParams(query)}`, { method, headers });
  const { keys } = rawClient({ baseUrl, rootKey: testRootKey });
  return { ask, keys, verbs, schemes, operation: verbs.get as Operation };
}

/** Headers of every answer over HTTP. */
const ofTransport = ["connection", "content-length", "date", "keep-alive"];

describe("the document of /v1/authz", () => {
  /** A value that the service takes, for each parameter. */
  const accepted: Readonly<Record<string, string>> = {
    apiId: guardedApi,
    permissions: "docs.read AND docs.write",
    cost: "2",
    ratelimitCost: "2",
    ip: "192.0.2.7",
    ipHeader: "X-Real-IP",
  };

  it("names every parameter that is taken, and no other is", async () => {
    const { ask, keys, operation } = await start();
    const { key } = await keys.createKey({ apiId: guardedApi, permissions: ["docs.*"] });
    const statusOf = async (query: Record<string, string>) => (await ask(query, { "x-api-key": key })).status;
    const names = operation.parameters.filter((each) => each.in === "query").map(({ name }) => name);
    expect(names).toEqual(Object.keys(accepted));
    for (const name of names) expect([name, await statusOf({ [name]: accepted[name] ?? "" })]).toEqual([name, 200]);
    const answer = await ask({ unnamed: "1" }, { "x-api-key": key });
    expect(answer.status).toBe(400);
    // The service itself lists what there is.
    const [, listed] = decodeURIComponent(answer.headers.get("x-latchkey-reason") ?? "").split("there are ");
    expect(listed?.split(", ")).toEqual(names);
    // What `verifyKey` takes besides must not come by the query.
    for (const name of ["key", "remaining", "ratelimit", "ratelimits"])
      expect(await statusOf({ [name]: "1" })).toBe(400);
  });

  /** Parameters with a grammar that no schema can state: it may refuse more. */
  const withGrammar = ["permissions", "ip"];

  it("states the bounds of parameters, within which they are taken and beyond which they are refused", async () => {
    const { ask, keys, operation } = await start();
    const { key } = await keys.createKey({ apiId: guardedApi });
    const tried: string[] = [];
    for (const { name, schema } of operation.parameters.filter((each) => each.in === "query")) {
      for (const [value, fits] of edgesOf(schema)) {
        const isTaken = (await ask({ [name]: value }, { "x-api-key": key })).status !== 400;
        if (!withGrammar.includes(name) || !fits) expect([name, value, isTaken]).toEqual([name, value, fits]);
        tried.push(name);
      }
    }
    expect([...new Set(tried)]).toEqual(Object.keys(accepted));
  });

  /** Values on both sides of each bound, and whether they are within it. */
  function edgesOf({ minimum, maximum, minLength, maxLength, pattern }: Schema): [value: string, fits: boolean][] {
    const edges: [string, boolean][] = [];
    if (minimum !== undefined) edges.push([`${minimum}`, true], [`${minimum - 1}`, false]);
    if (maximum !== undefined) edges.push([`${maximum}`, true], [`${maximum + 1}`, false]);
    if (minLength === 1) edges.push(["", false]);
    if (maxLength !== undefined) edges.push(["a".repeat(maxLength), true], ["a".repeat(maxLength + 1), false]);
    for (const value of pattern === undefined ? [] : ["", "X-Real-IP", "x_1~", "x y", "x:", "ä"]) {
      edges.push([value, new RegExp(pattern as string).test(value)]);
    }
    return edges;
  }

  it("names the headers that hold the key and the root key", async () => {
    const { ask, keys, operation, schemes } = await start({ verifyAuth: "required" });
    const { key } = await keys.createKey({ apiId: guardedApi });
    const [rootKey, ...others] = operation.parameters.filter((each) => each.in === "header");
    expect(others).toEqual([]);
    const root = { [rootKey?.name ?? ""]: testRootKey };
    const used = operation.security.flatMap((each) => Object.keys(each)).map((name) => schemes[name]);
    const headersOfKey = used.map((scheme): Record<string, string> => {
      if (scheme?.type === "apiKey") return { [scheme.name ?? ""]: key };
      return scheme?.scheme === "bearer" ? { authorization: `Bearer ${key}` } : expect.fail("unknown scheme");
    });
    expect(headersOfKey).toHaveLength(2);
    for (const header of headersOfKey) {
      expect((await ask({}, { ...header, ...root })).status).toBe(200);
      expect((await ask({}, header)).status).toBe(503);
    }
    expect((await ask({}, root)).status).toBe(401);
  });

  it("lists the statuses, codes and headers of all answers, and no others; none has a body", async () => {
    const { ask, keys, operation, verbs } = await start();
    const guarded = await start({ verifyAuth: "required" });
    const outage = await start({ keys: { findByDigest: () => Promise.reject(new Unavailable("the store is away")) } });
    const ratelimit = { limit: 100, duration: 600_000 };
    const limited = (more: object) => keys.createKey({ apiId: guardedApi, ratelimit, ...more });
    const { key } = await limited({ permissions: ["docs.read"] });
    const { key: disabled } = await limited({ enabled: false });
    const { key: powerless } = await limited({});
    const { key: lost } = await outage.keys.createKey({ apiId: guardedApi });
    const query = { apiId: guardedApi, permissions: "docs.read" };
    const refused = await createRefusedKeys({ keys });
    const answers = [
      await ask(query),
      await ask({ ...query, cost: "-1" }, { "x-api-key": key }),
      await guarded.ask(query, { "x-api-key": key }),
      await outage.ask(query, { "x-api-key": lost }),
      await ask(query, { "x-api-key": disabled }),
      await ask(query, { "x-api-key": powerless }),
      ...(await Promise.all(refused.map((each) => ask(query, { "x-api-key": each.key })))),
      // The document describes GET, and says that all methods are answered alike.
      ...(await Promise.all(
        ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"].map((method) =>
          ask(query, { "x-api-key": key }, method),
        ),
      )),
    ];
    expect(Object.keys(verbs)).toEqual(["get"]);
    const seen = new Map<string, { headers: Set<string>; codes: Set<string> }>();
    for (const { status, headers, text } of await Promise.all(answers.map(read))) {
      const described = operation.responses[status] ?? expect.fail(`${status} is not described`);
      expect([status, text, described.content]).toEqual([status, "", undefined]);
      const names = [...headers.keys()].filter((name) => !ofTransport.includes(name));
      const needed = Object.entries(described.headers).filter(([, { required }]) => required);
      expect(Object.keys(described.headers)).toEqual(expect.arrayContaining(names));
      expect(names).toEqual(expect.arrayContaining(needed.map(([name]) => name)));
      const all = seen.get(`${status}`) ?? { headers: new Set(), codes: new Set() };
      for (const name of names) all.headers.add(name);
      all.codes.add(headers.get("x-latchkey-code") ?? "");
      seen.set(`${status}`, all);
    }
    // What is described was seen, too.
    expect([...seen.keys()].sort()).toEqual(Object.keys(operation.responses));
    for (const [status, { headers }] of Object.entries(operation.responses)) {
      expect([...(seen.get(status)?.headers ?? [])].sort(), status).toEqual(Object.keys(headers).sort());
      const codes = headers["x-latchkey-code"]?.schema.enum ?? [];
      expect([...(seen.get(status)?.codes ?? [])].sort(), status).toEqual(codes.toSorted());
    }
  });
});

async function read(answer: Response) {
  return { status: answer.status, headers: answer.headers, text: await answer.text() };
}
