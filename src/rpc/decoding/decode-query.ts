import {
  type DescField,
  type DescMessage,
  type JsonObject,
  type JsonValue,
  type MessageShape,
  ScalarType,
} from "@bufbuild/protobuf";
import { invalid, Violations } from "../invalid-request.ts";
import { readJson } from "./decode-json.ts";
import { parseJson } from "./parse-json.ts";

/**
 * Decodes the query of a URL into a message, or throws a `InvalidRequest` that lists what is wrong with it.
 *
 * As strict as a JSON body, and with the same errors: a parameter becomes the JSON value that its field asks for, and the
 * object of all of them is read as a body is. A list is a parameter that is repeated.
 */
export function decodeQuery<Desc extends DescMessage>(desc: Desc, query: string): MessageShape<Desc> {
  const violations = new Violations();
  // Without a prototype: a parameter may have any name.
  const object: JsonObject = Object.create(null);
  for (const [name, text] of splitQuery(query)) {
    const field = desc.fields.find(({ jsonName }) => jsonName === name);
    if (name === "") violations.add("", "has a parameter without a name");
    else if (field?.proto.options?.debugRedact) violations.add(name, SECRET_REFUSED);
    else if (field?.fieldKind === "list") listIn(object, name).push(toJsonValue(field, text));
    else if (name in object) violations.add("", "has the same field twice");
    else object[name] = field === undefined ? text : toJsonValue(field, text);
  }
  return readJson(desc, object, violations);
}

const SECRET_REFUSED = "is a secret, and URLs are kept in logs: send it in the body of a POST";

/** Names and values as forms send them: percent-encoded, `+` for a space. */
export function splitQuery(query: string): [name: string, text: string][] {
  if (query === "") return [];
  return query.split("&").map((part) => {
    const end = part.indexOf("=");
    return end === -1 ? [decode(part), ""] : [decode(part.slice(0, end)), decode(part.slice(end + 1))];
  });
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    throw invalid("", "has a query that is not percent-encoded UTF-8");
  }
}

const NUMBER = /^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$/;

/** How values of a type are written that JSON has. */
const literals: Readonly<Partial<Record<ScalarType, RegExp>>> = {
  [ScalarType.BOOL]: /^(true|false)$/,
  [ScalarType.DOUBLE]: NUMBER,
  [ScalarType.INT32]: NUMBER,
  [ScalarType.UINT32]: NUMBER,
};

/** What is not written as the field's type stays a string, which the field's reader refuses. */
function toJsonValue({ jsonName, scalar }: DescField, text: string): JsonValue {
  if (scalar !== undefined && literals[scalar]?.test(text)) return parseJson(Buffer.from(text), () => jsonName);
  // The parser of JSON does the same: a database cannot store it.
  if (scalar === ScalarType.STRING && text.includes("\0"))
    throw invalid(jsonName, "must not contain the NUL character");
  return text;
}

function listIn(object: JsonObject, name: string): JsonValue[] {
  object[name] ??= [];
  return object[name] as JsonValue[];
}
