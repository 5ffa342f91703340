import { type DescField, type DescMessage, getOption, ScalarType } from "@bufbuild/protobuf";
import { field as fieldRules } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { absent_means_all, Change, change, items_by } from "../../../gen/latchkey/v1/options_pb.js";
import { type CallName, calls, inputOf, keyIdCalls, type Protocol } from "../protocols.ts";
import { type BadRequest, badJson, jsonProtocols } from "./bad-request.ts";

/* Fields of the wrong type and unknown names: possible only in JSON. Made of the proto file, for every field of every method. */

const text = '"cnry"';
const number = "7391";
const truth = "true";
const list = '["cnry", 7391]';
const object = '{"cnry-x1": 7391}';
const fraction = "7391.5";
const largeExponent = "7391e9";
const beyondInt32 = "2147487391";
const beyondUint32 = "4294967391";
const beyondDoubles = "73917391739173917391";
const infinite = "7391e999";

const wrongForWhole = [text, '"7391"', truth, list, object, fraction, largeExponent, beyondDoubles];
const wrongFor: Partial<Record<ScalarType, readonly string[]>> = {
  [ScalarType.STRING]: [number, truth, list, object],
  [ScalarType.BOOL]: [text, number, list],
  [ScalarType.INT32]: [...wrongForWhole, beyondInt32],
  [ScalarType.UINT32]: [...wrongForWhole, beyondUint32, `-${number}`],
  [ScalarType.DOUBLE]: [text, '"7391"', truth, list, object, infinite, beyondDoubles],
};

interface SentField {
  readonly call: CallName;
  /** As an error names it, such as `refill.amount` or `keys[0].digest`. */
  readonly path: string;
  readonly field: DescField;
  readonly isTop: boolean;
  /** What an update can do to it. */
  readonly allowed: Change;
}

/** The fields of a message and of those in it. Metadata is free JSON, and JSON has no mask. `within`: the field that it is in. */
function fieldsOf(call: CallName, desc: DescMessage, parent = "", within?: SentField): readonly SentField[] {
  return desc.fields
    .filter(({ message }) => message?.typeName !== "google.protobuf.FieldMask")
    .flatMap((field) => {
      const path = `${parent}${field.jsonName}`;
      const inner = field.message?.typeName.startsWith("latchkey.") ? field.message : undefined;
      const innerPath = field.fieldKind === "list" ? `${path}[0].` : `${path}.`;
      const own = { call, path, field, isTop: within === undefined, allowed: allowedFor(field, within) };
      return [own, ...(inner === undefined ? [] : fieldsOf(call, inner, innerPath, own))];
    });
}

/** Of a message that an update changes in part, what it must have can be set, and the rest be removed too. */
function allowedFor(field: DescField, within: SentField | undefined): Change {
  if (within === undefined) return getOption(field, change);
  const isKeyOfItem = getOption(within.field, items_by) === field.name;
  if (within.allowed === Change.UNSPECIFIED || isKeyOfItem) return Change.UNSPECIFIED;
  return getOption(field, fieldRules).required ? Change.SET : Change.SET_OR_REMOVE;
}

const fields = calls.flatMap((call) => fieldsOf(call, inputOf(call)));

/** By the path of the value that is wrong. */
function wrongValues({ path, field }: SentField): readonly (readonly [string, readonly string[]])[] {
  if (field.message !== undefined && field.fieldKind !== "list") return [[path, [text, number, truth, list]]];
  const scalar = field.fieldKind === "scalar" || field.fieldKind === "list" ? field.scalar : undefined;
  const each = scalar === undefined ? [text, number, truth, list] : (wrongFor[scalar] as readonly string[]);
  return field.fieldKind === "list"
    ? [
        [path, [text, number, truth, object]],
        [`${path}[0]`, each],
      ]
    : [[path, each]];
}

interface WrongName {
  readonly call: CallName;
  readonly body: string;
  readonly field: string;
  readonly says?: string;
  readonly neverSays?: string;
}

/** The error names the field around it and a similar known name, never the unknown name itself. */
const wrongNames: WrongName[] = [
  {
    call: "createKey",
    body: '{"apiId":"cnry","rateLimit":{"limit":7391}}',
    field: "",
    says: "did you mean ratelimit?",
    neverSays: "rateLimit",
  },
  {
    call: "createKey",
    body: '{"apiId":"cnry","remaning":7391}',
    field: "",
    says: "did you mean remaining?",
    neverSays: "remaning",
  },
  { call: "createKey", body: '{"apiId":"cnry","expire":7391}', field: "", says: "did you mean expires?" },
  {
    call: "createKey",
    body: '{"apiId":"cnry","byte_length":7391}',
    field: "",
    says: "did you mean byteLength?",
    neverSays: "byte_length",
  },
  {
    call: "createKey",
    body: '{"apiId":"cnry","owner_id":"cnry"}',
    field: "",
    says: "did you mean ownerId?",
    neverSays: "owner_id",
  },
  {
    call: "createKey",
    body: '{"apiId":"cnry","REMAINING":7391}',
    field: "",
    says: "did you mean remaining?",
    neverSays: "REMAINING",
  },
  { call: "createKey", body: '{"apiId":"cnry","somethingElse":7391}', field: "", neverSays: "somethingElse" },
  { call: "createKey", body: '{"apiId":"cnry","constructor":"cnry"}', field: "", neverSays: "constructor" },
  { call: "createKey", body: '{"apiId":"cnry","toString":null}', field: "", neverSays: "toString" },
  {
    call: "createKey",
    body: '{"apiId":"cnry","refill":{"ammount":7391}}',
    field: "refill",
    says: "did you mean amount?",
    neverSays: "ammount",
  },
  {
    call: "createKey",
    body: '{"refill":{"carry_over":true}}',
    field: "refill",
    says: "did you mean carryOver?",
    neverSays: "carry_over",
  },
  { call: "createKey", body: '{"ratelimit":{"limits":7391}}', field: "ratelimit", says: "did you mean limit?" },
  { call: "createKey", body: '{"ratelimit":{"window":7391}}', field: "ratelimit", neverSays: "window" },
  { call: "createKey", body: '{"apiId":"cnry","cnry-x1":7391}', field: "", says: "unknown field" },
  { call: "createKey", body: '{"apiId":"cnry","cnry x1":7391}', field: "", says: "unknown field" },
  { call: "createKey", body: '{"apiId":"cnry","cnry😀":7391}', field: "", says: "unknown field" },
  { call: "createKey", body: `{"cnry${"x".repeat(61)}":7391}`, field: "", says: "unknown field" },
  {
    call: "createKey",
    body: '{"apiId":"x","cnry_2AsTXY7ZPJon57xXlwg1iFScToYBEIkW74":1}',
    field: "",
    says: "unknown field",
  },
  { call: "createKey", body: '{"apiId":"x","cnry_x1":{"cnry_x2":"\\u0000"}}', field: "", says: "NUL" },
  {
    call: "createKey",
    body: '{"ratelimit":{"cnry_x1":7391}}',
    field: "ratelimit",
    says: "(known: async, limit, duration)",
  },
  { call: "createKey", body: '{"apiId":"cnry","":7391}', field: "", says: "unknown field" },
  { call: "createKey", body: '{"refill":{"cnry-x1":7391}}', field: "refill", says: "unknown field" },
  { call: "createKey", body: '{"apiId":"cnry","__proto__":{"enabled":true}}', field: "", says: "reserved name" },
  { call: "verifyKey", body: '{"key":"cnry","Key":"cnry"}', field: "", says: "did you mean key?" },
  {
    call: "verifyKey",
    body: '{"key":"cnry","api_id":"cnry"}',
    field: "",
    says: "did you mean apiId?",
    neverSays: "api_id",
  },
  { call: "verifyKey", body: '{"key":"cnry","keyId":"cnry"}', field: "", neverSays: "keyId" },
  {
    call: "verifyKey",
    body: '{"key":"x","cnry_x1":7391}',
    field: "",
    says: "(known: key, apiId, permissions, ip, remaining, ratelimit, ratelimits)",
  },
  { call: "createApi", body: '{"apiId":"cnry","costMax":7391}', field: "", neverSays: "costMax" },
  {
    call: "createApi",
    body: '{"defaults":{"ipAllow":7391}}',
    field: "defaults",
    says: "(known: prefix, byteLength, ratelimit, remaining, refill, costMax)",
    neverSays: "ipAllow",
  },
  { call: "updateApi", body: '{"defaults":{"rateLimit":7391}}', field: "defaults", says: "did you mean ratelimit?" },
  ...calls.map((call): WrongName => {
    const known = fieldsOf(call, inputOf(call)).filter(({ isTop }) => isTop);
    return { call, body: '{"cnry_x1":7391}', field: "", says: `(known: ${known.map(({ path }) => path).join(", ")})` };
  }),
  ...fields
    .filter(({ field, isTop }) => isTop && field.name !== field.jsonName)
    .map(({ call, field: { name, jsonName } }): WrongName => {
      const body = `{"${name}":"cnry"}`;
      return { call, body, field: "", says: `did you mean ${jsonName}?`, neverSays: name };
    }),
  ...keyIdCalls.map((call): WrongName => ({ call, body: '{"identity":"cnry"}', field: "", says: "(known: keyId" })),
];

/** What JSON.stringify makes of NaN. Once it was taken for "absent", and issued keys without a limit. */
function nullOf({ call, field, path, allowed }: SentField): readonly BadRequest[] {
  if (allowed === Change.SET_OR_REMOVE || getOption(field, absent_means_all)) return [];
  const says = allowed === Change.SET ? `${path}: cannot be removed` : `${path}: must not be null`;
  const body = `${bodyWith(path, "null").slice(0, -1)},"cnry":7391}`;
  return [badJson(`${path} is null`, call, path, body, { says })];
}

/** The methods that are called most over every protocol, the others over one after the other: all read JSON alike. */
function wrongTypesOf(sent: SentField, at: number): readonly BadRequest[] {
  const { call } = sent;
  return wrongValues(sent).flatMap(([path, values]) =>
    values.map((value, i) => {
      const request = badJson(`${path} is ${value}`, call, path, bodyWith(path, value));
      const next = jsonProtocols[(at + i) % jsonProtocols.length] as Protocol;
      return call === "createKey" || call === "verifyKey" ? request : { ...request, on: [next] };
    }),
  );
}

export const types: BadRequest[] = [
  ...fields.flatMap(nullOf),
  ...fields.flatMap(wrongTypesOf),
  ...wrongNames.map(({ call, body, field, ...rest }) => badJson(`unknown name in ${body}`, call, field, body, rest)),
];

/** `refill.amount` and a value become `{"refill":{"amount":value}}`, `keys[0]` and a value `{"keys":[value]}`. */
function bodyWith(path: string, value: string): string {
  return path
    .split(".")
    .reverse()
    .reduce((inner, part) => {
      const name = part.replace("[0]", "");
      return `{"${name}":${name === part ? inner : `[${inner}]`}}`;
    }, value);
}
