import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { methods } from "../../gen/latchkey/v1/client.ts";
import { errorCodes } from "../../src/rpc/api-error.ts";
import { authzPath } from "../../src/rpc/authz/authz-contract.ts";
import { startTestServer } from "../support/in-process-server.ts";
import { readText } from "../support/repository.ts";

const page = readText("gen/docs.html");
const ids = [...page.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id);

describe("the page of the API reference", () => {
  it("has a place for every method and every error, and leads nowhere else", () => {
    for (const [group, table] of Object.entries(methods))
      for (const name of Object.keys(table)) expect(ids).toContain(`${group}.${name}`);
    expect(ids).toEqual(expect.arrayContaining(Object.keys(errorCodes)));
    expect(new Set(ids).size).toBe(ids.length);
    const links = [...page.matchAll(/ (?:href|src|action)="([^"]+)"/g)].map(([, link]) => link as string);
    for (const link of links.filter((each) => each !== "/openapi.json")) expect(ids).toContain(link.slice(1));
    expect(page).not.toMatch(/<script|<link|<img|@import|url\(|\son\w+=|style="|javascript:/);
  });

  it("tells of every field, also of those in other messages", () => {
    const request = page.slice(page.indexOf('id="keys.createKey"'), page.indexOf('id="keys.verifyKey"'));
    for (const field of ["apiId", "refill.interval", "ratelimits[].name"])
      expect(request).toContain(`<code>${field}</code>`);
  });

  it("tells of everything that proxies can ask and are answered", () => {
    const section = page.slice(page.indexOf('id="authz"'), page.indexOf('id="errors"'));
    const { parameters, responses } = JSON.parse(readText("gen/openapi.json")).paths[authzPath].get;
    const headers = Object.values<{ headers: object }>(responses).flatMap((answer) => Object.keys(answer.headers));
    const names = [...parameters.map(({ name }: { name: string }) => name), ...Object.keys(responses), ...headers];
    expect(names.length).toBeGreaterThan(40);
    for (const name of names) expect(section).toContain(`<td><code>${name}</code>`);
    expect(page).toContain('<a href="#authz">');
  });

  it("is what errors link to, by the address that the service is told and no other", async () => {
    for (const publicUrl of ["", "https://keys.example.com"]) {
      const { baseUrl } = await startTestServer({ settings: { publicUrl } });
      const headers = {
        "content-type": "application/json",
        "x-forwarded-host": "evil.test",
        forwarded: "host=evil.test",
      };
      for (const path of ["/v1/keys.verifyKey", "/latchkey.v1.KeysService/VerifyKey", "/nowhere"]) {
        const answer = await fetch(`${baseUrl}${path}`, { method: "POST", headers, body: "{" });
        const text = await answer.text();
        expect(text, path).not.toContain("evil");
        if (path.startsWith("/latchkey")) continue;
        const { error } = JSON.parse(text);
        expect(error.docs).toBe(`${publicUrl}/docs#${error.code}`);
      }
    }
  });

  it("is served with a policy under which it can load and run nothing but its own style", async () => {
    const { baseUrl } = await startTestServer();
    const answer = await fetch(`${baseUrl}/docs`);
    expect([answer.status, answer.headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
    const text = await answer.text();
    expect(text).toBe(page);
    const style = text.slice(text.indexOf("<style>") + "<style>".length, text.indexOf("</style>"));
    const hash = createHash("sha256").update(style).digest("base64");
    const policy = answer.headers.get("content-security-policy") ?? "";
    expect(policy.split("; ")).toEqual([
      "default-src 'none'",
      `style-src 'sha256-${hash}'`,
      "base-uri 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
    ]);
    expect(answer.headers.get("x-content-type-options")).toBe("nosniff");
    const head = await fetch(`${baseUrl}/docs`, { method: "HEAD" });
    expect([head.status, head.headers.get("content-length")]).toEqual([200, `${Buffer.byteLength(page)}`]);
  });
});
