import { clearExtension, clone, create, type MessageInitShape as Init, setExtension } from "@bufbuild/protobuf";
import {
  CodeGeneratorRequestSchema,
  FieldOptionsSchema,
  FieldDescriptorProto_Type as FieldType,
  type FileDescriptorProto,
  FileDescriptorProtoSchema,
  FieldDescriptorProto_Label as Label,
  MessageOptionsSchema,
} from "@bufbuild/protobuf/wkt";
import {
  FieldRulesSchema,
  field as fieldRules,
  MessageRulesSchema,
  message as messageRules,
} from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { describe, expect, it } from "vitest";
import { absent_means_all, absent_needs } from "../../gen/latchkey/v1/options_pb.js";
import { plugin } from "../../tools/protoc-gen-latchkey.ts";
import { gadgetsFile } from "../support/gadgets.ts";
import { compileTestProtos } from "../support/test-protos.ts";

const { files, found } = compileTestProtos();

describe("codecs", () => {
  it("import only what they use", () => {
    const code = generate((file) => {
      for (const [response, name] of compoundResponseFields) removeField(file, response, name);
    });
    expect(code).toContain("printDouble");
    expect(code).not.toMatch(/printStruct|printList|toBinary|listSize|GadgetOwnerSchema/);
  });

  it.each<[string, (file: FileDescriptorProto) => void, RegExp]>([
    [
      "a rule about a whole request",
      (file) => setMessageRule(file, "TakeGadgetsRequest"),
      /Request: rules about a whole/,
    ],
    [
      "a rule about a whole message inside",
      (file) => setMessageRule(file, "GadgetCost"),
      /GadgetCost: rules about a who/,
    ],
    ["a request with a number of 64 bits", change("GadgetCost", "cost", { type: FieldType.INT64 }), /cost.*not read/],
    ["a request with a fraction", change("GadgetCost", "cost", { type: FieldType.DOUBLE }), /cost.*not read/],
    ["a request with a list of numbers", change("GadgetCost", "cost", { label: Label.REPEATED }), /cost.*not read/],
    [
      "a request with free JSON",
      change("TakeGadgetsRequest", "remaining", { typeName: ".google.protobuf.Struct" }),
      /remaining.*not read/,
    ],
    [
      "a request that holds itself",
      change("TakeGadgetsRequest", "remaining", { typeName: ".latchkey.v1.TakeGadgetsRequest" }),
      /remaining.*cannot hold itself/,
    ],
    ["a list without bound", rules("TakeGadgetsRequest", "ratelimits", {}), /ratelimits.*has a rule max_items/],
    [
      "a list of different items",
      rules("TakeGadgetsRequest", "ratelimits", { type: { case: "repeated", value: { maxItems: 2n, unique: true } } }),
      /ratelimits.*rule unique/,
    ],
    ["a list whose absence means more", absentNeeds, /ratelimits.*absent_needs/],
    ["a list whose absence means all", absentMeansAll, /ratelimits.*absent_means_all/],
    [
      "a rule about a message",
      rules("TakeGadgetsRequest", "remaining", { cel: [{ id: "a", expression: "true" }] }),
      /remaining.*rule cel/,
    ],
    [
      "a rule that is not a bound",
      rules("GadgetCost", "cost", { type: { case: "int32", value: { in: [1, 2] } } }),
      /cost.*rule in /,
    ],
    [
      "bounds that exclude each other",
      rules("GadgetCost", "cost", { type: { case: "int32", value: bounds(5, 4) } }),
      /cost.*from a lower to an upper bound/,
    ],
    [
      "a pattern that JavaScript may read in another way",
      rules("NamedGadgetCost", "name", { required: true, type: { case: "string", value: { pattern: "^(?i)a$" } } }),
      /name.*patterns of one set/,
    ],
    ["a text that may be left out unnoticed", rules("NamedGadgetCost", "name", {}), /name.*required or optional/],
    [
      "a flag that must be true",
      change("GadgetPlace", "json", { proto3Optional: false }, required),
      /json.*is optional/,
    ],
    ["a tag of two bytes", change("GadgetCost", "cost", { number: 16 }), /at most 15/],
    ["a response with another number", change("GadgetState", "limit", { type: FieldType.SINT32 }), /limit.*not print/],
    ["a response with a list of texts", change("GadgetOwner", "remaining", listOfTexts), /remaining.*not print/],
    [
      "a response with free JSON inside",
      change("GadgetOwner", "ratelimits", { typeName: ".google.protobuf.Struct", label: Label.OPTIONAL }),
      /ratelimits.*not print/,
    ],
    [
      "a response that holds itself",
      change("GadgetOwner", "ratelimits", { typeName: ".latchkey.v1.GadgetOwner" }),
      /ratelimits.*cannot hold itself/,
    ],
  ])("are refused for %s", (_, edit, message) => {
    expect(() => generate(edit)).toThrow(message);
  });
});

const compoundResponseFields = [
  ["TakeGadgetsResponse", "meta"],
  ["TakeGadgetsResponse", "ratelimits"],
  ["TakeGadgetsResponse", "owner"],
  ["TakeGadgetsResponse", "states"],
] as const;

/** The codecs of gadgets.proto as it is after an edit. */
function generate(edit: (file: FileDescriptorProto) => void): string {
  const edited = files.map((file) => clone(FileDescriptorProtoSchema, file));
  edit(found(edited.find(({ name }) => name === gadgetsFile)));
  const request = create(CodeGeneratorRequestSchema, { fileToGenerate: [gadgetsFile], protoFile: edited });
  return found(plugin.run(request).file.find(({ name }) => name === "latchkey/v1/gadgets_hot.ts")).content;
}

/** Rules of another kind than the field would be refused before, so they are removed. */
function change(message: string, name: string, to: object, options = create(FieldOptionsSchema)) {
  return (file: FileDescriptorProto) => {
    const field = fieldOf(file, message, name);
    if (!("number" in to)) field.options = options;
    if ("label" in to || "proto3Optional" in to) {
      field.proto3Optional = false;
      clearOneof(file, message, name);
    }
    Object.assign(field, to);
  };
}

const listOfTexts = { label: Label.REPEATED, type: FieldType.STRING };
const required = create(FieldOptionsSchema);
setExtension(required, fieldRules, create(FieldRulesSchema, { required: true }));

/** The field leaves the oneof that stands for its presence. */
function clearOneof(file: FileDescriptorProto, messageName: string, name: string): void {
  const message = messageOf(file, messageName);
  const { oneofIndex } = fieldOf(file, messageName, name);
  const field = fieldOf(file, messageName, name) as { oneofIndex?: number };
  if (message.oneofDecl.length === 0 || oneofIndex === undefined) return;
  delete field.oneofIndex;
  message.oneofDecl.splice(oneofIndex, 1);
  for (const other of message.field as { oneofIndex?: number }[]) {
    if (other.oneofIndex !== undefined && other.oneofIndex > oneofIndex) other.oneofIndex--;
  }
}

function rules(message: string, name: string, init: Init<typeof FieldRulesSchema>) {
  return (file: FileDescriptorProto) => {
    const field = fieldOf(file, message, name);
    field.options ??= create(FieldOptionsSchema);
    clearExtension(field.options, fieldRules);
    setExtension(field.options, fieldRules, create(FieldRulesSchema, init));
  };
}

function bounds(gte: number, lte: number) {
  return { greaterThan: { case: "gte", value: gte }, lessThan: { case: "lte", value: lte } } as const;
}

function absentNeeds(file: FileDescriptorProto): void {
  setExtension(found(fieldOf(file, "TakeGadgetsRequest", "ratelimits").options), absent_needs, "key");
}

function absentMeansAll(file: FileDescriptorProto): void {
  setExtension(found(fieldOf(file, "TakeGadgetsRequest", "ratelimits").options), absent_means_all, true);
}

function setMessageRule(file: FileDescriptorProto, name: string): void {
  const message = messageOf(file, name);
  message.options ??= create(MessageOptionsSchema);
  setExtension(message.options, messageRules, create(MessageRulesSchema, { cel: [{ id: "a", expression: "true" }] }));
}

function removeField(file: FileDescriptorProto, messageName: string, name: string): void {
  const message = messageOf(file, messageName);
  message.field = message.field.filter((field) => field.name !== name);
}

function messageOf(file: FileDescriptorProto, name: string) {
  return found(file.messageType.find((each) => each.name === name));
}

function fieldOf(file: FileDescriptorProto, messageName: string, name: string) {
  return found(messageOf(file, messageName).field.find((field) => field.name === name));
}
