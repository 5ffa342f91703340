import { clearExtension, clone, create, setExtension } from "@bufbuild/protobuf";
import {
  CodeGeneratorRequestSchema,
  type FileDescriptorProto,
  FileDescriptorProtoSchema,
} from "@bufbuild/protobuf/wkt";
import { Validator } from "@seriousme/openapi-schema-validator";
import { describe, expect, it } from "vitest";
import { file_latchkey_v1_keys as keys } from "../../gen/latchkey/v1/keys_pb.js";
import { Change, change, idempotent, public$ } from "../../gen/latchkey/v1/options_pb.js";
import { plugin } from "../../tools/protoc-gen-latchkey.ts";
import { compileWidgets, widgetsFile } from "../support/widgets.ts";

const widgets = compileWidgets();

/** Runs the plugin on widgets.proto as it is after an edit, and on keys.proto. */
function generate(edit: (file: FileDescriptorProto) => void = () => {}): (name: string) => string {
  const files = widgets.files.map((file) => clone(FileDescriptorProtoSchema, file));
  edit(files.find(({ name }) => name === widgetsFile) as FileDescriptorProto);
  // Both contracts import the same files.
  const imported = [...files, ...keys.dependencies.map(({ proto }) => proto), keys.proto];
  const protoFile = [...new Map(imported.map((file) => [file.name, file])).values()];
  const fileToGenerate = [widgetsFile, keys.proto.name];
  const written = plugin.run(create(CodeGeneratorRequestSchema, { fileToGenerate, protoFile })).file;
  return (name) => written.find((file) => file.name === name)?.content ?? "";
}

function fieldOf(file: FileDescriptorProto, messageName: string, name: string) {
  return defined(messageOf(file, messageName).field.find((field) => field.name === name));
}

describe("several services", () => {
  const contentOf = generate();

  it("are gathered in one list, one client and one document", () => {
    expect(contentOf("latchkey/v1/widgets_gateway.ts")).toContain("WidgetsService.method.getWidget");
    const services = contentOf("latchkey/v1/services.ts");
    expect(services).toContain("[KeysService, WidgetsService]");
    expect(services).toContain("[...keysRoutes, ...widgetsRoutes]");
    expect(services).toContain("[...keysHotMethods]");
    expect(contentOf("latchkey/v1/client.ts")).toMatch(/readonly keys: KeysClient;.*readonly widgets: WidgetsClient;/s);
    const { paths, tags } = JSON.parse(contentOf("openapi.json"));
    expect(tags).toMatchObject([{ name: "Keys" }, { name: "Widgets" }, { name: "Proxies" }]);
    expect(paths["/v1/widgets.getWidget"].post).toMatchObject({ operationId: "widgets.getWidget", tags: ["Widgets"] });
    expect(paths).toHaveProperty(["/v1/keys.createKey"]);
  });

  it("have a valid document", async () => {
    expect(await new Validator().validate(JSON.parse(contentOf("openapi.json")))).toMatchObject({ valid: true });
  });
});

describe("bindings", () => {
  const contentOf = generate();
  const { paths, components } = JSON.parse(contentOf("openapi.json"));

  it("are routes with a verb, and the client uses POST", () => {
    const routes = contentOf("latchkey/v1/widgets_gateway.ts");
    const found = routes.matchAll(/verb: "(\w+)", path: "([^"]+)", method: \S+getWidget /g);
    expect(Array.from(found, ([, ...route]) => route.join(" "))).toEqual([
      "POST /v1/widgets.getWidget",
      "GET /v1/widgets.getWidget",
      "POST /v1/widgets.findWidget",
      "GET /v1/shelves.getWidget",
    ]);
    expect(contentOf("latchkey/v1/client.ts")).toMatch(/getWidget: \{\s+path: "\/v1\/widgets.getWidget"/);
  });

  it("are operations of the document, GET with parameters that hold no secret", () => {
    const { get, post } = paths["/v1/widgets.getWidget"];
    expect(post.requestBody.content["application/json"].schema.$ref).toMatch(/GetWidgetRequest$/);
    expect(get).not.toHaveProperty("requestBody");
    expect(get.security).toEqual([{ rootKey: ["widgets.read"] }]);
    const names = get.parameters.map(({ name }: { name: string }) => name);
    expect(names).toEqual(["widgetId", "enabled", "limit", "before", "count", "colours", "sizes"]);
    expect(get.parameters[0]).toEqual({
      name: "widgetId",
      in: "query",
      required: true,
      description: "Its id: 1 to 20 characters.",
      schema: { type: "string", maxLength: 20 },
    });
    expect(get.parameters[5].schema).toEqual({ type: "array", items: { type: "string", maxLength: 5 }, maxItems: 2 });
    expect(paths["/v1/shelves.getWidget"]).not.toHaveProperty("post");
    expect(paths["/v1/shelves.getWidget"].get.operationId).toBe("shelves.getWidget.get");
    expect(paths["/v1/widgets.findWidget"].post.operationId).toBe("widgets.findWidget");
  });

  it("print lists as arrays", () => {
    expect(components.schemas.GetWidgetResponse).toMatchObject({
      properties: { parts: { type: "array", items: { $ref: "#/components/schemas/Part" } } },
      required: ["asked", "parts"],
    });
    expect(contentOf("latchkey/v1/client.ts")).toMatch(/parts: Part\[\];/);
    expect(contentOf("latchkey/v1/client.ts")).toMatch(/colours\?: string\[\] \| undefined;/);
  });

  it.each<[string, (file: FileDescriptorProto) => void, RegExp]>([
    [
      "a message among the parameters",
      (file) => Object.assign(fieldOf(file, "GetWidgetRequest", "secret"), { type: 11, typeName: ".latchkey.v1.Part" }),
      /secret: a query parameter cannot hold it/,
    ],
    [
      "a required secret",
      (file) => Object.assign(fieldOf(file, "GetWidgetRequest", "widget_id").options ?? {}, { debugRedact: true }),
      /widget_id: is a secret/,
    ],
  ])("refuse GET with %s", (_, edit, message) => {
    expect(() => generate(edit)).toThrow(message);
  });
});

describe("updates", () => {
  const contentOf = generate();
  const { properties, required } = JSON.parse(contentOf("openapi.json")).components.schemas.UpdateWidgetRequest;

  it("have null in the document where it removes a field, and no mask", () => {
    expect(properties).not.toHaveProperty("updateMask");
    expect(required).toEqual(["widgetId"]);
    expect(properties.longName).toMatchObject({ type: ["string", "null"], minLength: 1 });
    expect(properties.colour).toMatchObject({ type: ["string", "null"], enum: ["red", "blue", null] });
    expect(properties.enabled.type).toBe("boolean");
    expect(properties.ifVersion.type).toBe("integer");
    expect(properties.meta.type).toEqual(["object", "null"]);
    expect(properties.part.anyOf).toEqual([{ $ref: "#/components/schemas/UpdatedPartUpdate" }, { type: "null" }]);
    expect(properties.tags).not.toHaveProperty("minItems");
    expect(properties.users).toMatchObject({ type: ["array", "null"], minItems: 1 });
  });

  it("have null in the client's types, and in those of what a handler gets", () => {
    const client = contentOf("latchkey/v1/client.ts");
    for (const line of ["longName?: string | null", "enabled?: boolean", "part?: UpdatedPartUpdate | null"]) {
      expect(client).toContain(`  ${line} | undefined;\n`);
    }
    expect(client).toContain('colour?: "red" | "blue" | null | undefined;');
    expect(client).not.toContain("updateMask");
    const updates = contentOf("latchkey/v1/updates.ts");
    expect(updates).toContain('import type { UpdateWidgetRequest } from "./widgets_pb.js";');
    expect(updates).toContain('"latchkey.v1.UpdateWidgetRequest": {');
    expect(updates).toContain('readonly longName?: NonNullable<UpdateWidgetRequest["longName"]> | null;');
    expect(updates).toContain('readonly enabled?: NonNullable<UpdateWidgetRequest["enabled"]>;');
    expect(updates).not.toContain("ifVersion");
  });

  it("have messages in a form in which nothing has to be sent, but for what an item of a list is recognised by", () => {
    const { schemas } = JSON.parse(contentOf("openapi.json")).components;
    expect(schemas.Rule).toMatchObject({ required: ["limit"] });
    expect(schemas.RuleUpdate).not.toHaveProperty("required");
    expect(schemas.RuleUpdate.properties).toMatchObject({
      active: { type: ["boolean", "null"] },
      limit: { type: "integer", minimum: 1 },
      note: { type: ["string", "null"] },
      part: { anyOf: [{ $ref: "#/components/schemas/UpdatedPartUpdate" }, { type: "null" }] },
      used: { type: "integer", readOnly: true },
    });
    expect(schemas.NamedRuleUpdate).toMatchObject({ required: ["name"], properties: { limit: { type: "integer" } } });
    const client = contentOf("latchkey/v1/client.ts");
    expect(client).toContain("  rule?: RuleUpdate | RuleState | null | undefined;\n");
    expect(client).toContain("  rules?: NamedRuleUpdate[] | null | undefined;\n");
    const updates = contentOf("latchkey/v1/updates.ts");
    expect(updates).toContain("readonly rules?: readonly NamedRuleUpdate[] | null;");
    expect(updates).toContain('  readonly note?: NonNullable<Rule["note"]> | null;');
    expect(updates).toContain('  readonly active?: NonNullable<Rule["active"]>;');
    expect(updates).toContain('  readonly name: NonNullable<NamedRule["name"]>;');
  });

  const request = "UpdateWidgetRequest";
  it.each<[string, (file: FileDescriptorProto) => void, RegExp]>([
    [
      "that can change nothing",
      (file) => {
        for (const { options } of messageOf(file, request).field) if (options) clearExtension(options, change);
      },
      /an update without fields/,
    ],
    ["without a mask", (file) => void messageOf(file, request).field.pop(), /long_name.*needs a field update_mask/],
    [
      "whose mask has another name",
      (file) => Object.assign(fieldOf(file, request, "update_mask"), { name: "mask" }),
      /mask: an update has one field/,
    ],
    [
      "whose mask is not a mask",
      (file) => Object.assign(fieldOf(file, request, "update_mask"), { typeName: ".latchkey.v1.UpdatedPart" }),
      /update_mask: an update has one field/,
    ],
    [
      "that change a field without presence",
      (file) => setExtension(defined(fieldOf(file, request, "widget_id").options), change, Change.SET),
      /widget_id: a field that an update changes cannot be required/,
    ],
    [
      "inside another message",
      (file) =>
        Object.assign(messageOf(file, "UpdatedPart").field[0] ?? {}, { type: 11, typeName: MASK, name: "update_mask" }),
      /UpdatedPart: only the request of a method can be an update/,
    ],
  ])("are refused %s", (_, edit, message) => {
    expect(() => generate(edit)).toThrow(message);
  });
});

describe("an idempotency key", () => {
  const optionsOf = (file: FileDescriptorProto, name: string) =>
    defined(defined(file.service[0]?.method.find((method) => method.name === name)).options);

  it("is taken by the methods that say so, in the client and in the document", () => {
    const client = (contentOf: (name: string) => string) => contentOf("latchkey/v1/client.ts");
    expect(client(generate())).toContain("updateWidget(request: UpdateWidgetRequest, options?: CallOptions)");
    const switchedOn = generate((file) => setExtension(optionsOf(file, "UpdateWidget"), idempotent, true));
    expect(client(switchedOn)).toContain("updateWidget(request: UpdateWidgetRequest, options?: IdempotentCallOptions)");
    const { post } = JSON.parse(switchedOn("openapi.json")).paths["/v1/widgets.updateWidget"];
    expect(post.parameters).toEqual([{ $ref: "#/components/parameters/IdempotencyKey" }]);
    expect(post.responses).toHaveProperty("409");
  });

  it.each<[string, (file: FileDescriptorProto) => void]>([
    ["that changes nothing", (file) => setExtension(optionsOf(file, "GetWidget"), idempotent, true)],
    [
      "without a root key",
      (file) => {
        setExtension(optionsOf(file, "UpdateWidget"), idempotent, true);
        setExtension(optionsOf(file, "UpdateWidget"), public$, true);
      },
    ],
  ])("is refused for a method %s", (_, edit) => {
    expect(() => generate(edit)).toThrow(/idempotent\) is for methods that change something with a root key/);
  });
});

const MASK = ".google.protobuf.FieldMask";

function messageOf(file: FileDescriptorProto, name: string) {
  return defined(file.messageType.find((each) => each.name === name));
}

function defined<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("widgets.proto does not hold what this test looks for");
  return value;
}
