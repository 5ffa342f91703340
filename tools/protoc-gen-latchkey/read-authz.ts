// Reads what `/v1/authz` takes and answers. No descriptor says it: its handler is written by hand, and so is the table beside it.
import * as authz from "../../src/rpc/authz/authz-contract.ts";
import { OUTCOMES } from "./http-facts.ts";
import type { Message } from "./read-contract.ts";
import type { Field } from "./read-field.ts";

export interface Authz {
  readonly path: string;
  readonly comment: string;
  readonly parameters: readonly Field[];
  /** The headers that can hold the key to verify, and a root key. */
  readonly keyHeader: string;
  readonly rootKey: { readonly name: string; readonly description: string };
  readonly answers: readonly Answer[];
}

export interface Answer {
  readonly status: number;
  readonly description: string;
  readonly codes: readonly string[];
  readonly headers: readonly AnswerHeader[];
}

export interface AnswerHeader {
  readonly name: string;
  readonly description: string;
  /** Whether every answer has it. */
  readonly always: boolean;
  /** The values that it can have, if they are known. */
  readonly codes?: readonly string[];
}

/** Undefined for a contract without the verification that it asks for. */
export function readAuthz(messages: readonly Message[]): Authz | undefined {
  if (!messages.some(({ name }) => name === REQUEST)) return undefined;
  const parameters = Object.entries(authz.fieldOfParameter).map(([name, path]) => ({
    ...fieldAt(path.split("."), REQUEST, messages),
    name,
  }));
  return {
    path: authz.authzPath,
    comment: authz.authzDescription,
    parameters: [...parameters, ipHeader],
    keyHeader: authz.keyHeader,
    rootKey: authz.rootKeyHeader,
    answers: Object.entries(authz.answers).map(([status, answer]) => answerOf(Number(status), answer)),
  };
}

const REQUEST = "VerifyKeyRequest";

/** The bounds are those of the last field on the path. What it is for, the first one says. */
function fieldAt([name, ...inner]: readonly string[], messageName: string, messages: readonly Message[]): Field {
  const field = messages.find((each) => each.name === messageName)?.fields.find((each) => each.name === name);
  if (field === undefined) throw new Error(`${messageName} has no field ${name}, which a parameter of authz fills`);
  if (field.type.kind !== "message") return field;
  return { ...fieldAt(inner, field.type.name, messages), comment: field.comment };
}

const ipHeader: Field = {
  name: authz.ipHeaderParameter.name,
  comment: authz.ipHeaderParameter.description,
  required: false,
  change: undefined,
  secret: false,
  type: { kind: "string", oneOf: [] },
  bounds: { pattern: authz.ipHeaderParameter.pattern },
};

function answerOf(
  status: number,
  { description, headers }: { readonly description: string; readonly headers: Readonly<Record<string, string>> },
): Answer {
  const own = Object.entries(authz.statusOfCode).map(([code, ofCode]) => ({ code, status: ofCode }));
  const codes = [...own, ...OUTCOMES].filter((each) => each.status === status).map(({ code }) => code);
  const common = Object.entries(authz.commonHeaders).map(([name, meaning]) => ({
    name,
    description: meaning,
    always: true,
    ...(name === "x-latchkey-code" && { codes }),
  }));
  const others = Object.entries(headers).map(([name, meaning]) => ({ name, description: meaning, always: false }));
  return { status, description, codes, headers: [...common, ...others] };
}
