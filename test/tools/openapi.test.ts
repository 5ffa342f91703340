import { join } from "node:path";
import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import { createValidator } from "@bufbuild/protovalidate";
import { beforeAll, describe, expect, it } from "vitest";
import { routes } from "../../gen/latchkey/v1/services.ts";
import { authzPath } from "../../src/rpc/authz/authz-contract.ts";
import { EXAMPLES, type Example } from "../../tools/protoc-gen-latchkey/examples.ts";
import { startTestServer } from "../support/in-process-server.ts";
import { npmPackage } from "../support/npm-programs.ts";
import { readText } from "../support/repository.ts";

interface Content {
  readonly "application/json": { readonly schema: { readonly $ref: string }; readonly example?: object };
}
interface Operation {
  readonly requestBody?: { readonly content: Content };
  readonly responses: { readonly 200: { readonly content: Content } };
}
interface Document {
  readonly servers?: readonly object[];
  readonly paths: Readonly<Record<string, Readonly<Record<"get" | "post", Operation>>>>;
}
/** Of the two packages, what is used here. */
interface Redocly {
  createConfig(config: { extends: string[] }): Promise<object>;
  lintFromString(options: { source: string; config: object }): Promise<{ ruleId: string; message: string }[]>;
}
type Validate = ((value: unknown) => boolean) & { errors: unknown };
interface Ajv {
  addSchema(schema: object, id: string): void;
  compile(schema: object): Validate;
}

const document: Document = JSON.parse(readText("gen/openapi.json"));
/** Those with JSON. What proxies ask has no bodies: test/rpc/authz-document.test.ts. */
const { [authzPath]: _, ...pathsWithJson } = document.paths;
const operations = Object.entries(pathsWithJson).flatMap(([path, verbs]) =>
  Object.entries(verbs).map(([verb, operation]) => ({ name: `${verb} ${path}`, operation })),
);
/** The contents of all requests and answers. */
const contents = operations.flatMap(({ name, operation: { requestBody, responses } }) => [
  ...(requestBody ? [{ name: `the request of ${name}`, ...requestBody.content["application/json"] }] : []),
  { name: `the answer of ${name}`, ...responses[200].content["application/json"] },
]);

let redocly: Redocly;
let ajv: Ajv;
beforeAll(async () => {
  const packages = npmPackage("@redocly/openapi-core", "2.64.0");
  redocly = await import(join(packages, "@redocly/openapi-core/lib/index.js"));
  const { default: Ajv2020 } = await import(join(packages, "@redocly/ajv/dist/2020.js"));
  ajv = new (Ajv2020.default ?? Ajv2020)({ strict: false, validateFormats: false });
  ajv.addSchema(document, "document");
});

describe("the OpenAPI document", () => {
  async function lint(linted: object): Promise<string[]> {
    const config = await redocly.createConfig({ extends: ["recommended"] });
    const problems = await redocly.lintFromString({ source: JSON.stringify(linted), config });
    return problems.map(({ ruleId, message }) => `${ruleId}: ${message}`);
  }

  it("passes the recommended rules of a linter, which refuses it without servers", async () => {
    expect(await lint(document)).toEqual([]);
    const { servers: _, ...without } = document;
    expect(await lint(without)).toEqual([expect.stringMatching(/^no-empty-servers: /)]);
  });

  it("has an example of every request and every answer", () => {
    expect(operations).toHaveLength(routes.length);
    expect(contents.filter(({ example }) => example === undefined).map(({ name }) => name)).toEqual([]);
    const paths = operations.map(({ name }) => name.replace(/^\w+ /, ""));
    expect(Object.keys(EXAMPLES).filter((path) => !paths.includes(path))).toEqual([]);
  });
});

describe("the examples", () => {
  it.each(contents)("$name is what its schema asks for", ({ schema, example }) => {
    const validate = ajv.compile({ $ref: `document${schema.$ref}` });
    expect(validate(example), JSON.stringify(validate.errors)).toBe(true);
    for (const field of Object.keys(example ?? {})) {
      // No field has a list of lists as its value.
      expect(validate({ ...example, [field]: [[]] }), field).toBe(false);
    }
  });

  it.each(Object.entries(EXAMPLES))("%s has fields of the contract only, within its rules", (path, example) => {
    const { method } = routes.find((route) => route.path === path) ?? expect.fail("no route");
    // It refuses fields that it does not know.
    fromJson(method.output, example.response as JsonValue);
    const request = fromJson(method.input, example.request as JsonValue);
    expect(createValidator().validate(method.input, request)).toMatchObject({ kind: "valid" });
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
  return JSON.parse(text.replace(/"((key|req|evt|root|live|lk_root)_)\w+"/g, '"$1"'));
}
