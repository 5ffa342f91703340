import { beforeAll, describe, expect, it } from "vitest";
import { composePublicApi } from "../support/compose-public-api.ts";
import { readText } from "../support/repository.ts";

const { version } = JSON.parse(readText("package.json")) as { version: string };
let baseUrl = "";

beforeAll(async () => {
  const { onePort } = composePublicApi();
  baseUrl = `http://127.0.0.1:${await onePort.listen(0, "127.0.0.1")}`;
  return () => onePort.close(0);
});

const ask = (accept: string, method = "GET") => fetch(baseUrl, { method, headers: { accept }, redirect: "manual" });

describe("GET /", () => {
  it.each(["*/*", "application/json", "application/json, text/html"])(
    "tells programs (Accept: %s) what runs there and in which version",
    async (accept) => {
      const answer = await ask(accept);
      expect([answer.status, answer.headers.get("vary")]).toEqual([200, "accept"]);
      expect(await answer.json()).toEqual({ name: "latchkey", version, docs: "/docs", openapi: "/openapi.json" });
    },
  );

  it("leads browsers to the API reference", async () => {
    const answer = await ask("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8");
    expect([answer.status, answer.headers.get("location")]).toEqual([302, "/docs"]);
    expect((await fetch(new URL("/docs", baseUrl))).status).toBe(200);
  });

  it("answers HEAD without a body, and other methods with 405", async () => {
    expect([(await ask("*/*", "HEAD")).status, await (await ask("*/*", "HEAD")).text()]).toEqual([200, ""]);
    const answer = await ask("*/*", "POST");
    expect([answer.status, answer.headers.get("allow")]).toEqual([405, "GET, HEAD"]);
  });
});
