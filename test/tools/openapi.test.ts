import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import { createValidator } from "@bufbuild/protovalidate";
import { describe, expect, it } from "vitest";
import { routes } from "../../gen/latchkey/v1/services.ts";
import { EXAMPLES, type Example } from "../../tools/protoc-gen-latchkey/examples.ts";
import { startTestServer } from "../support/in-process-server.ts";
import { contents, operations } from "./openapi-document.ts";

describe("the OpenAPI document", () => {
  it("has an example of every request and every answer", () => {
    expect(operations).toHaveLength(routes.length);
    expect(contents.filter(({ example }) => example === undefined).map(({ name }) => name)).toEqual([]);
    const paths = operations.map(({ name }) => name.replace(/^\w+ /, ""));
    expect(Object.keys(EXAMPLES).filter((path) => !paths.includes(path))).toEqual([]);
  });
});

describe("the examples", () => {
  const validator = createValidator();

  it.each(Object.entries(EXAMPLES))("%s has fields of the contract only, within its rules", (path, example) => {
    const { method } = routes.find((route) => route.path === path) ?? expect.fail("no route");
    // It refuses fields that it does not know.
    fromJson(method.output, example.response as JsonValue);
    const request = fromJson(method.input, example.request as JsonValue);
    expect(validator.validate(method.input, request)).toMatchObject({ kind: "valid" });
  });

  it("are what the service answers, one after the other, but for ids, secrets and times", async () => {
    const { baseUrl, rootKey } = await startTestServer();
    const headers = { "content-type": "application/json", authorization: `Bearer ${rootKey}` };
    /** Ids and secrets of the examples, and what the service has given out instead. */
    const actual = new Map<string, string>();
    for (const [path, { request, response }] of Object.entries(EXAMPLES)) {
      const body = [...actual].reduce((text, [from, to]) => text.replaceAll(from, to), JSON.stringify(request));
      const answered = await fetch(baseUrl + path, { method: "POST", headers, body });
      const answer = (await answered.json()) as Record<string, string>;
      expect(withoutChance(answer), path).toEqual(withoutChance(response));
      for (const [name, value] of Object.entries(response as Example["request"])) {
        if (/^(keyId|key|rootKeyId|rootKey)$/.test(name) && !actual.has(String(value))) {
          actual.set(String(value), String(answer[name]));
        }
      }
    }
  });
});

/** The same value without ids, secrets and times, which differ each time. */
function withoutChance(value: unknown): unknown {
  const text = JSON.stringify(value, (_, each) => (typeof each === "number" && each > 1e12 ? "a time" : each));
  const withoutTimes = text.replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "a time");
  return JSON.parse(withoutTimes.replace(/"((key|req|evt|root|live|lk_root)_)\w+"/g, '"$1"'));
}
