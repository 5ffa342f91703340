import { readFileSync } from "node:fs";
import { join } from "node:path";
import {
  clearExtension,
  clone,
  create,
  type DescFile,
  getOption,
  type MessageInitShape as Init,
  setExtension,
} from "@bufbuild/protobuf";
import {
  CodeGeneratorRequestSchema,
  FieldDescriptorProto_Type as FieldType,
  type FileDescriptorProto,
  FileDescriptorProtoSchema,
  MethodOptionsSchema,
} from "@bufbuild/protobuf/wkt";
import { FieldRulesSchema, field as fieldRules, Ignore } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { Validator } from "@seriousme/openapi-schema-validator";
import { describe, expect, it } from "vitest";
import { http } from "../../gen/google/api/annotations_pb.js";
import { HttpRuleSchema } from "../../gen/google/api/http_pb.js";
import { type MethodFacts, methods } from "../../gen/latchkey/v1/client.ts";
import { file_latchkey_v1_keys as keys } from "../../gen/latchkey/v1/keys_pb.js";
import { hot, permission, public$ } from "../../gen/latchkey/v1/options_pb.js";
import { routes } from "../../gen/latchkey/v1/services.ts";
import { authzPath } from "../../src/rpc/authz/authz-contract.ts";
import { ERRORS } from "../../tools/protoc-gen-latchkey/http-facts.ts";
import { plugin } from "../../tools/protoc-gen-latchkey.ts";

const root = join(import.meta.dirname, "../..");
const openapi = readJson("gen/openapi.json");

describe("openapi.json", () => {
  it("has the version of the package", () => {
    expect(openapi.info).toMatchObject({ version: readJson("package.json").version });
  });

  it("is a valid OpenAPI document whose references resolve", async () => {
    const validator = new Validator();
    expect(await validator.validate(structuredClone(openapi))).toMatchObject({ valid: true });
    expect(JSON.stringify(validator.resolveRefs())).not.toContain('"$ref"');
    expect(await new Validator().validate({ ...openapi, info: {} })).toMatchObject({ valid: false });
  });

  it("holds exactly the routes of the gateway and what proxies ask, with the permissions of their methods", () => {
    expect(Object.keys(openapi.paths)).toEqual([...new Set(routes.map((route) => route.path)), authzPath]);
    for (const { path, method } of routes.filter(({ verb }) => verb === "POST")) {
      const { post } = operationsOf(path);
      const [group, name] = path.slice("/v1/".length).split(".");
      const facts: MethodFacts = methods[group as "keys"][method.localName as keyof (typeof methods)["keys"]];
      const isPublic = facts.isPublic ?? false;
      expect(post.operationId).toBe(`${group}.${name}`);
      expect(post.summary).not.toBe("");
      expect(isPublic).toBe(getOption(method, public$));
      const asRoot = { rootKey: isPublic ? [] : [getOption(method, permission)] };
      expect(post.security).toEqual(isPublic ? [{}, asRoot] : [asRoot]);
      for (const status of ["401", "403", "429"]) expect(status in post.responses).toBe(!isPublic);
      expect(post.requestBody.content["application/json"].schema.$ref).toContain(method.input.name);
      expect(post.responses["200"].content["application/json"].schema.$ref).toContain(method.output.name);
    }
    expect(operationsOf("/v1/keys.verifyKey").post.security).toEqual([{}, { rootKey: [] }]);
  });

  it("refuses unknown fields in requests and tolerates them in answers", () => {
    const closed = Object.keys(openapi.components.schemas).filter((id) => schemaOf(id).additionalProperties === false);
    const requests = new Set(routes.map(({ method }) => method.input.name));
    const parts = ["KeyDefaults", "Ratelimit", "Refill", "NamedRatelimit", "Cost", "NamedCost", "KeyToImport"];
    const inUpdates = ["KeyDefaults", "Ratelimit", "Refill", "NamedRatelimit"].map((name) => `${name}Update`);
    expect(closed.sort()).toEqual([...requests, ...parts, ...inUpdates].sort());
  });

  it("states the bounds of the contract", () => {
    const { properties, ...request } = schemaOf("CreateKeyRequest");
    expect(request).toMatchObject({ required: ["apiId"], dependentRequired: { refill: ["remaining"] } });
    expect(properties.apiId).toMatchObject({ type: "string", minLength: 1, maxLength: 255 });
    expect(properties.remaining).toMatchObject({ type: "integer", minimum: 0, maximum: 2_147_483_647 });
    expect(properties.expires).toMatchObject({ type: "integer", format: "int64", maximum: 253_402_300_799_999 });
    expect(properties.meta).toMatchObject({ type: "object", additionalProperties: true });
    expect(schemaOf("Refill").properties.interval?.enum).toEqual(["daily", "monthly"]);
    expect(schemaOf("Ratelimit").properties.duration).toMatchObject({ minimum: 1000, maximum: 2_592_000_000 });
    expect(schemaOf("VerifyKeyResponse").required).toEqual(["valid", "code", "meta", "requestId", "ratelimits"]);
    expect(schemaOf("RatelimitState").properties.reset).toMatchObject({ type: "integer", format: "int64" });
    expect(schemaOf("Error").properties.error?.properties.code?.enum).toEqual(ERRORS.map((error) => error.code));
  });

  it("states what has to be in a request beside its fields", () => {
    const oneOfTwo = [{ required: ["keyId"] }, { required: ["key"] }];
    expect(schemaOf("GetKeyRequest")).toMatchObject({ oneOf: oneOfTwo });
    expect(openapi.paths["/v1/keys.getKey"]?.get?.parameters).toMatchObject([{ name: "keyId", required: true }]);
    const anyOf = ["apiId", "ownerId", "externalId"].map((name) => ({ required: [name] }));
    expect(schemaOf("ListKeysRequest")).toMatchObject({ anyOf });
    // Either name of the owner will do.
    expect(schemaOf("GetOwnerRequest")).toMatchObject({ anyOf: anyOf.slice(1) });
    expect(schemaOf("GetOwnerRequest")).not.toHaveProperty("required");
    expect(schemaOf("ImportKeysRequest")).toMatchObject({ required: ["apiId", "keys"] });
    expect(schemaOf("CreateRootKeyRequest").properties.permissions).toMatchObject({ type: "array", minItems: 1 });
    expect(schemaOf("CreateRootKeyRequest").properties.apiIds).toMatchObject({ type: ["array", "null"], minItems: 1 });
    expect(schemaOf("CreateKeyRequest").properties.ipAllow).toMatchObject({ items: { format: "ip-range" } });
    expect(schemaOf("VerifyKeyRequest").properties.ip).toMatchObject({ type: "string", format: "ip" });
    const least = (name: string) => (schemaOf(name) as { minProperties?: number }).minProperties;
    expect(["UpdateKeyRequest", "UpdateOwnerRequest", "KeyDefaultsUpdate", "NamedRatelimitUpdate"].map(least)).toEqual([
      2,
      2,
      1,
      undefined,
    ]);
  });

  it("tells the errors and headers that are particular to a method", () => {
    const create = operationsOf("/v1/keys.createKey").post;
    expect(create.parameters).toEqual([{ $ref: "#/components/parameters/IdempotencyKey" }]);
    expect(create.responses).toHaveProperty("409");
    for (const path of [
      "keys.deleteKey",
      "keys.getKey",
      "apis.getApi",
      "owners.deleteOwner",
      "rootKeys.updateRootKey",
    ]) {
      expect(operationsOf(`/v1/${path}`).post.responses, path).toHaveProperty("404");
    }
    for (const path of ["owners.createOwner", "keys.listKeys", "audit.listEvents", "keys.verifyKey"]) {
      expect(operationsOf(`/v1/${path}`).post.responses, path).not.toHaveProperty("404");
    }
    const later = Object.entries(openapi.components.responses).filter(([, each]) => "Retry-After" in each.headers);
    expect(later.map(([name]) => name)).toEqual(["TooManyRequests", "Unavailable"]);
  });
});

describe("protoc-gen-latchkey", () => {
  it("writes the same bytes each time, and the routes and codecs that are checked in", () => {
    const files = new Map(generate().map((file) => [file.name, file.content]));
    const names = "keys_gateway keys_hot services updates client commands";
    const written = names.split(" ").map((name) => `latchkey/v1/${name}.ts`);
    expect([...files.keys()]).toEqual([...written, "version.ts", "openapi.json", "docs.html"]);
    expect(new Map(generate().map((file) => [file.name, file.content]))).toEqual(files);
    for (const name of written.filter((each) => /gateway|hot/.test(each))) {
      expect(files.get(name)).toBe(readText(`gen/${name}`));
    }
  });

  it("writes nothing for an input without routes of ours", () => {
    expect(generate(() => {}, "google/api/annotations.proto")).toEqual([]);
    expect(generate(() => {}, "latchkey/v1/options.proto")).toEqual([]);
    expect(generate((file) => file.service.splice(0))).toEqual([]);
  });

  it("writes no codecs where no method is hot", () => {
    const files = generate((file) => clearExtension(optionsOf(file, "VerifyKey"), hot));
    expect(files.map(({ name }) => name)).not.toContain("latchkey/v1/keys_hot.ts");
  });

  const post = { case: "post", value: "/v1/keys.createKey" } as const;
  const get = { case: "get", value: "/v1/keys.createKey" } as const;
  it.each<[string, Init<typeof HttpRuleSchema>, RegExp]>([
    ["no POST", { pattern: { case: "get", value: "/v1/keys.createKey" } }, /must be `post: "\/v1\/keys.createKey"`/],
    ["another verb", { pattern: { case: "put", value: "/v1/keys.createKey" }, body: "*" }, /must be `get`, or `post`/],
    ["no body", { pattern: post }, /`post` with `body: "\*"`/],
    ["a body that is one field", { pattern: post, body: "refill" }, /`post` with `body: "\*"`/],
    ["anything beside", { pattern: post, body: "*", selector: "latchkey.v1.*" }, /and nothing else/],
    [
      "the same route twice",
      { pattern: post, body: "*", additionalBindings: [create(HttpRuleSchema, { pattern: post, body: "*" })] },
      /POST \/v1\/keys.createKey would call two methods/,
    ],
    [
      "GET for a method that changes something",
      { pattern: post, body: "*", additionalBindings: [create(HttpRuleSchema, { pattern: get })] },
      /`get` must have `idempotency_level = NO_SIDE_EFFECTS`/,
    ],
    ["a variable path", { pattern: { case: "post", value: "/v1/keys/{key_id}" }, body: "*" }, /without variables/],
    ["no path of its own", { pattern: { case: "post", value: "/v1/apis.createKey" }, body: "*" }, /must be `post: /],
  ])("refuses an annotation with %s, naming the method", (_, rule, message) => {
    const run = () => generate((file) => setExtension(optionsOf(file), http, create(HttpRuleSchema, rule)));
    expect(run).toThrow(message);
    expect(run).toThrow(/latchkey.v1.KeysService.CreateKey|two methods/);
  });

  it.each<[string, (file: FileDescriptorProto) => void, RegExp]>([
    [
      "a method without permission",
      (file) => clearExtension(optionsOf(file), permission),
      /CreateKey.*must name a perm/,
    ],
    ["an empty permission", (file) => setExtension(optionsOf(file), permission, ""), /must name a permission/],
    ["a permission that grants several", (file) => setExtension(optionsOf(file), permission, "keys.*"), /must name a/],
    [
      "a public method without permission",
      (file) => clearExtension(optionsOf(file, "VerifyKey"), permission),
      /VerifyKey.*must name a permission/,
    ],
    ["RPC without permission", (file) => file.service[0]?.method.push(rpcWithoutOptions(file)), /must name a perm/],
    ["a streaming method", (file) => Object.assign(methodOf(file), { serverStreaming: true }), /streams/],
    [
      "64-bit integers, strings in JSON",
      (file) => setType(file, "remaining", FieldType.INT64),
      /remaining.*no JSON type/,
    ],
    ["doubles that may be fractions", (file) => setRules(file, "expires", {}), /expires.*"\.whole"/],
    ["rules with exceptions", (file) => setRules(file, "name", { ignore: Ignore.ALWAYS }), /name.*no counterpart/],
    [
      "a list whose rules are never looked at",
      (file) => setRules(file, "ratelimits", { ignore: Ignore.ALWAYS }),
      /ratelimits.*no counterpart/,
    ],
    [
      "a list that needs items, unless it has none",
      (file) =>
        setRules(file, "ratelimits", {
          ignore: Ignore.IF_ZERO_VALUE,
          type: { case: "repeated", value: { minItems: 1n } },
        }),
      /ratelimits.*no counterpart/,
    ],
    [
      "rules that JSON Schema cannot state",
      (file) => setRules(file, "name", { type: { case: "string", value: { contains: "x" } } }),
      /name.*rule contains has no counterpart/,
    ],
    [
      "a message that is both sent and answered",
      (file) => Object.assign(methodOf(file), { outputType: methodOf(file).inputType }),
      /CreateKeyRequest.*give each its own/,
    ],
  ])("refuses %s", (_, edit, message) => {
    expect(() => generate(edit)).toThrow(message);
  });
});

/** Runs the plugin on keys.proto as it is after an edit. */
function generate(edit: (file: FileDescriptorProto) => void = () => {}, fileToGenerate = keys.proto.name) {
  const edited = clone(FileDescriptorProtoSchema, keys.proto);
  edit(edited);
  const protoFile = protoFilesOf(keys).filter(({ name }) => name !== edited.name);
  const request = { fileToGenerate: [fileToGenerate], protoFile: [...protoFile, edited] };
  return plugin.run(create(CodeGeneratorRequestSchema, request)).file;
}

function protoFilesOf(file: DescFile): FileDescriptorProto[] {
  return [...new Set(withDependencies(file))].map((each) => each.proto);
}

function withDependencies(file: DescFile): DescFile[] {
  return [...file.dependencies.flatMap(withDependencies), file];
}

function methodOf(file: FileDescriptorProto, name = "CreateKey") {
  return defined(file.service[0]?.method.find((method) => method.name === name));
}

function optionsOf(file: FileDescriptorProto, name?: string) {
  return defined(methodOf(file, name).options);
}

function rpcWithoutOptions(file: FileDescriptorProto) {
  return { ...methodOf(file), name: "Internal", options: create(MethodOptionsSchema) };
}

function fieldOf(file: FileDescriptorProto, name: string, messageName = "CreateKeyRequest") {
  const message = file.messageType.find((each) => each.name === messageName);
  return defined(message?.field.find((field) => field.name === name));
}

function setType(file: FileDescriptorProto, name: string, type: FieldType): void {
  const field = fieldOf(file, name);
  field.type = type;
  clearExtension(defined(field.options), fieldRules);
}

function setRules(file: FileDescriptorProto, name: string, rules: Init<typeof FieldRulesSchema>) {
  setExtension(defined(fieldOf(file, name).options), fieldRules, create(FieldRulesSchema, rules));
}

function defined<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("the contract no longer holds what this test looks for");
  return value;
}

interface Content {
  "application/json": { schema: { $ref: string } };
}
interface Operation {
  operationId: string;
  summary: string;
  security: object[];
  parameters?: object[];
  requestBody: { content: Content };
  responses: Record<string, object> & { "200": { content: Content } };
}
interface Schema {
  properties: Record<string, Schema>;
  required?: string[];
  enum?: string[];
  additionalProperties?: boolean;
}
interface Document extends Record<string, unknown> {
  paths: Record<string, { post?: Operation; get?: Operation }>;
  components: { schemas: Record<string, Schema>; responses: Record<string, { headers: object }> };
}

function operationsOf(path: string): { post: Operation } {
  return { post: defined(openapi.paths[path]?.post) };
}

function schemaOf(name: string): Schema {
  return defined(openapi.components.schemas[name]);
}

function readJson(path: string): Document {
  return JSON.parse(readText(path));
}

function readText(path: string): string {
  return readFileSync(join(root, path), "utf8");
}
