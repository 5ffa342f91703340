import { create, type DescMessage, type MessageShape, ScalarType } from "@bufbuild/protobuf";
import type { Path } from "@bufbuild/protobuf/reflect";
import { createValidator, type Violation as RuleViolation } from "@bufbuild/protovalidate";
import type { Endpoint } from "./call.ts";
import { updateFieldsOf } from "./decoding/update-fields.ts";
import { InvalidRequest, type Violation } from "./invalid-request.ts";

const validator = createValidator();

/** Checks a message against the rules of its proto file, and returns it. */
export function validated<Desc extends DescMessage>(desc: Desc, message: MessageShape<Desc>): MessageShape<Desc> {
  const result = validator.validate(desc, message);
  if (result.kind === "error") throw result.error;
  if (result.kind === "valid") return message;
  const violations = result.violations.filter((violation) => !isOfAbsentPart(desc, violation));
  if (violations.length === 0) return message;
  throw new InvalidRequest(violations.map(toViolation));
}

/** What is absent in a message that an update changes in part is stored already, or found to be missing when it is looked for. */
function isOfAbsentPart(desc: DescMessage, { field: path, ruleId }: RuleViolation): boolean {
  const [top] = path;
  const last = path.at(-1);
  if (top?.kind !== "field" || last?.kind === "oneof") return false;
  const parts = updateFieldsOf(desc)?.changes.get(top.name)?.parts;
  if (parts === undefined) return false;
  if (ruleId !== "required") return ruleId.includes(".needs_");
  // Not that by which an item of a list is recognised: it is none of the parts.
  return last?.kind === "field" && (last.parent !== top.message || parts.has(last.name));
}

const prepareEveryMs = 500;

/**
 * Compiling all rules takes a fifth of a second, and only some requests need them. So it is done after the first
 * requests were served, in steps: a request that comes meanwhile waits for one step at most.
 */
export function prepareLater(endpoints: readonly Endpoint[]): void {
  const [first, ...rest] = endpoints.filter(({ handle }) => handle !== undefined);
  if (first === undefined) return;
  const prepare = () => {
    const { input } = first.method;
    validator.validate(input, create(input));
    prepareLater(rest);
  };
  setTimeout(prepare, prepareEveryMs).unref();
}

function toViolation({ field, ruleId, message }: RuleViolation): Violation {
  // A rule about a whole message names the field it is about in its id: `refill.needs_remaining` is about `refill`.
  const about = ruleId.slice(0, Math.max(0, ruleId.lastIndexOf(".")));
  // For an item of a list, the message in it.
  const inside = field.at(-1)?.kind === "list_sub" ? field.at(-2) : field.at(-1);
  const isOfMessage = inside?.kind === "field" && inside.message?.fields.some(({ jsonName }) => jsonName === about);
  const path = field.length === 0 ? about : isOfMessage ? `${jsonPath(field)}.${about}` : jsonPath(field);
  return { path, message: phrase(field, ruleId, message) };
}

function phrase(field: Path, ruleId: string, message: string): string {
  if (ruleId === "required") return requiredMessage(field);
  if (ruleId === "string.pattern") return phrasePattern(message);
  const last = field.at(-1);
  // Seconds are the usual mistake.
  const unit = last?.kind === "field" && last.name === "duration" ? " (milliseconds)" : "";
  const [, list] = /^(?:value )?must be in list \[(.+)\]$/.exec(message) ?? [];
  return list === undefined ? message.replace(/^value /, "") + unit : `must be ${list.replace(/, (?=[^,]*$)/, " or ")}`;
}

/** On the wire, a field that is empty or 0 looks like one that was left out. */
function requiredMessage(path: Path): string {
  const field = path.at(-1);
  if (field?.kind !== "field" || field.fieldKind === "message") return "is required";
  const isNumber = field.fieldKind === "scalar" && field.scalar !== ScalarType.STRING;
  return isNumber ? "is required and must not be 0" : "is required and must not be empty";
}

function jsonPath(path: Path): string {
  let text = "";
  for (const segment of path) {
    if (segment.kind === "field") text += text === "" ? segment.jsonName : `.${segment.jsonName}`;
    else if (segment.kind === "list_sub") text += `[${segment.index}]`;
  }
  return text;
}

/**
 * The sentence that callers read in place of a regular expression, by the `pattern` of a rule in the proto files. A test
 * fails for a pattern without one.
 */
export const patternMessages: Readonly<Record<string, string>> = {
  "^[A-Za-z]([A-Za-z0-9_]*[A-Za-z0-9])?$":
    "must begin with a letter and end with a letter or digit, and must have only letters, digits and _",
  "^[A-Za-z0-9_.-]+$": "must have only letters, digits, _, . and -",
  "^([A-Za-z0-9_.:-]+|([A-Za-z0-9_.:-]+\\.)?\\*)$":
    "must have only letters, digits, _, ., : and -, or be such a name with .* behind it, or *",
  "^([0-9A-Fa-f]{64}|[0-9A-Za-z+/_-]{42}[AEIMQUYcgkosw048]=?)$": "must be a SHA-256 digest in hex or base64",
};

/** `message`: that of protovalidate, which ends with the pattern. */
export function phrasePattern(message: string): string {
  const [, pattern = ""] = /`(.*)`$/s.exec(message) ?? [];
  return patternMessages[pattern] ?? "has characters that are not allowed";
}
