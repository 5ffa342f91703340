import { create } from "@bufbuild/protobuf";
import { type VerifyKeyRequest, VerifyKeyRequestSchema } from "../../../gen/latchkey/v1/keys_pb.js";
import { splitQuery } from "../decoding/decode-query.ts";
import { Violations } from "../invalid-request.ts";
import { validated } from "../validate.ts";
import { fieldOfParameter, ipHeaderParameter } from "./authz-contract.ts";

/** What the address that an operator has configured asks of every request. */
export interface AuthzParameters {
  readonly request: Omit<VerifyKeyRequest, "key">;
  /** The lower-case name of the header that holds the end user's address. */
  readonly ipHeader: string | undefined;
}

const costMax = 2_147_483_647;
const nameOfHeader = new RegExp(ipHeaderParameter.pattern);
type Name = keyof typeof fieldOfParameter | typeof ipHeaderParameter.name;
const names: readonly string[] = [...Object.keys(fieldOfParameter), ipHeaderParameter.name];

/** Throws `InvalidRequest`, which lists all that is wrong. A parameter that is misspelt or comes twice is never passed over. */
export function readParameters(query: string): AuthzParameters {
  const violations = new Violations();
  const given = new Map<Name, string>();
  for (const [name, text] of splitQuery(query)) {
    if (!isName(name)) violations.add("", `has an unknown parameter; there are ${names.join(", ")}`);
    else if (given.has(name)) violations.add(name, "is there twice");
    else if (text.includes("\0")) violations.add(name, "must not contain the NUL character");
    else given.set(name, text);
  }
  const ipHeader = given.get("ipHeader")?.toLowerCase();
  if (ipHeader !== undefined && !nameOfHeader.test(ipHeader)) {
    violations.add("ipHeader", "must be the name of a header");
  }
  if (ipHeader !== undefined && given.has("ip")) violations.add("ipHeader", "and ip exclude each other");
  const remaining = readCost("cost");
  const ratelimit = readCost("ratelimitCost");
  violations.throwIfAny();
  const fields = { ...textOf("apiId"), ...textOf("permissions"), ...textOf("ip"), remaining, ratelimit };
  const request = create(VerifyKeyRequestSchema, { ...fields, key: "any" });
  // The rules of the message, such as those for lengths. The key is not among the parameters.
  validated(VerifyKeyRequestSchema, request);
  return { request, ipHeader };

  function textOf(name: "apiId" | "permissions" | "ip"): Partial<Record<Name, string>> {
    const text = given.get(name);
    return text === undefined ? {} : { [name]: text };
  }

  function readCost(name: "cost" | "ratelimitCost") {
    const text = given.get(name);
    if (text === undefined) return undefined;
    const cost = /^(0|[1-9][0-9]{0,9})$/.test(text) ? Number(text) : Number.NaN;
    if (!(cost <= costMax)) violations.add(name, `must be a whole number from 0 to ${costMax}`);
    return { cost };
  }
}

function isName(name: string): name is Name {
  return names.includes(name);
}
