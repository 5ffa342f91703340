import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { routes } from "../../gen/latchkey/v1/services.ts";
import { buildScripts } from "../../tools/build-client.ts";
import { Browser } from "../support/browser.ts";
import { type LatchkeyProcess, startLatchkey } from "../support/latchkey-process.ts";
import { rawClient } from "../support/raw-client.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { testRootKey } from "../support/test-root-key.ts";

const undos: (() => unknown)[] = [];
const atEnd = (undo: () => unknown) => void undos.unshift(undo);
const folder = tempFolder(atEnd);
const usesMax = 10;
let latchkey: LatchkeyProcess;
let client: ReturnType<typeof rawClient>;
let browser: Browser;
/** Origins of pages. Those of the first may call the service. */
let allowed: string;
let other: string;
let keyId: string;
let key: string;

beforeAll(async () => {
  await buildScripts(join(folder, "client"), "esm");
  allowed = await servePages();
  other = await servePages();
  const settings = {
    LATCHKEY_DATA_DIR: join(folder, "data"),
    LATCHKEY_ROOT_KEY: testRootKey,
    LATCHKEY_CORS_ORIGINS: `https://app.example.com,${allowed}`,
  };
  latchkey = await startLatchkey(settings, undefined, atEnd);
  client = rawClient({ baseUrl: latchkey.baseUrl, rootKey: testRootKey });
  ({ key, keyId } = await client.keys.createKey({ apiId: "api", remaining: usesMax }));
  browser = Browser.start(atEnd);
});

afterAll(async () => {
  for (const undo of undos) await undo();
});

/** Serves an empty page, one that its own policy forbids, and our client. Answers the origin. */
async function servePages(): Promise<string> {
  const html = { "content-type": "text/html" };
  const server = createServer((req, res) => {
    if (req.url === "/client.js") {
      res.writeHead(200, { "content-type": "text/javascript" });
      res.end(readFileSync(join(folder, "client/index.js")));
    } else if (req.url === "/forbidden") {
      res.writeHead(200, { ...html, "content-security-policy": "default-src 'none'" });
      res.end("<!doctype html><style>body { color: red }</style>");
    } else res.writeHead(200, html).end("<!doctype html>");
  });
  atEnd(() => server.close());
  await once(server.listen(0, "127.0.0.1"), "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** An expression that posts JSON to the service. It resolves to what a script can read of the answer. */
function post(path: string, body: object, headers: Record<string, string> = {}): string {
  const init = {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  };
  return `fetch(${JSON.stringify(latchkey.baseUrl + path)}, ${JSON.stringify(init)}).then(async (answer) => ({
    status: answer.status,
    requestId: answer.headers.get("x-request-id"),
    body: await answer.json(),
  }))`;
}

const asRoot = { authorization: `Bearer ${testRootKey}` };
const verifyPath = "/v1/keys.verifyKey";
const connectPath = "/latchkey.v1.KeysService/VerifyKey";

describe("in a browser", () => {
  it("a page of an allowed origin verifies keys, over JSON, over Connect and with our client", async () => {
    const page = await browser.openPage(`${allowed}/`);
    const verified = {
      status: 200,
      requestId: expect.stringMatching(/^req_/),
      body: expect.objectContaining({ keyId }),
    };
    expect(await page.evaluate(post(verifyPath, { key }))).toEqual(verified);
    expect(await page.evaluate(post(connectPath, { key }, { "connect-protocol-version": "1" }))).toEqual(verified);
    const trace = { traceparent: `00-${"a".repeat(32)}-${"b".repeat(16)}-01`, tracestate: "vendor=1" };
    const [options, request, callOptions] = [{ baseUrl: latchkey.baseUrl }, { key }, trace].map((each) =>
      JSON.stringify(each),
    );
    const withClient = `import("/client.js").then(({ createClient }) =>
      createClient(${options}).keys.verifyKey(${request}, ${callOptions}))`;
    expect(await page.evaluate(withClient)).toMatchObject({ valid: true, keyId, remaining: usesMax - 3 });
    expect(page.problems).toEqual([]);
    // The answer to the first is remembered for the third.
    const preflights = page.requests.filter(({ method }) => method === "OPTIONS");
    expect(preflights.map(({ url }) => url.slice(latchkey.baseUrl.length))).toEqual([verifyPath, connectPath]);
    await page.close();
  });

  it("a page of another origin takes no use of a key and reads no answer", async () => {
    const page = await browser.openPage(`${other}/`);
    const { remaining } = await client.keys.getKey({ keyId });
    await expect(page.evaluate(post(verifyPath, { key }))).rejects.toThrow("TypeError: Failed to fetch");
    // Sent without a preflight, as forms are.
    const plain = { "content-type": "text/plain" };
    await expect(page.evaluate(post(verifyPath, { key }, plain))).rejects.toThrow("TypeError: Failed to fetch");
    expect(page.problems).toContainEqual(expect.stringContaining("has been blocked by CORS policy"));
    expect(await client.keys.getKey({ keyId })).toMatchObject({ remaining });
    await page.close();
  });

  it("no page can use a root key, whatever its origin", async () => {
    for (const origin of [allowed, other]) {
      const page = await browser.openPage(`${origin}/`);
      const calls = [
        post("/v1/keys.createKey", { apiId: "api" }, asRoot),
        post("/v1/keys.deleteKey", { keyId }, asRoot),
        post(verifyPath, { key }, asRoot),
        `fetch("${latchkey.baseUrl}/v1/keys.listKeys?apiId=api", ${JSON.stringify({ headers: asRoot })})`,
      ];
      for (const call of calls) await expect(page.evaluate(call)).rejects.toThrow("TypeError: Failed to fetch");
      expect(page.problems.filter((text) => text.includes("has been blocked by CORS policy"))).toHaveLength(
        calls.length,
      );
      await page.close();
    }
    const { keys } = await client.keys.listKeys({ apiId: "api" });
    expect(keys.map((each) => each.keyId)).toEqual([keyId]);
  });

  it("the API reference is shown whole, breaks no policy and asks no other host", async () => {
    const page = await browser.openPage(`${latchkey.baseUrl}/docs`);
    const shown = await page.evaluate<string>("document.querySelector('main').innerText");
    for (const { path } of routes) expect(shown).toContain(path);
    // The style sheet is in force.
    expect(await page.evaluate("getComputedStyle(document.body).display")).toBe("grid");
    expect(page.problems).toEqual([]);
    const elsewhere = page.requests.filter(({ url }) => new URL(url).origin !== latchkey.baseUrl);
    expect(elsewhere).toEqual([]);
    await page.close();

    const forbidden = await browser.openPage(`${other}/forbidden`);
    expect(forbidden.problems).toContainEqual(expect.stringContaining("Content Security Policy"));
  });
});
