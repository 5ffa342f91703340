import { type Message, toJson } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodeJson } from "../../../src/rpc/decoding/decode-json.ts";
import { decodeQuery } from "../../../src/rpc/decoding/decode-query.ts";
import { validated } from "../../../src/rpc/validate.ts";
import { compileWidgets } from "../../support/widgets.ts";
import { CANARY, outcomeOf, refusalOf, told } from "./refusal.ts";

const request = compileWidgets().messageOf("GetWidgetRequest");
const known = "(known: widgetId, secret, enabled, limit, before, count, colours, sizes)";
const secretRefused = "secret: is a secret, and URLs are kept in logs: send it in the body of a POST";

function readJson(json: object): Message {
  return validated(request, decodeJson(request, Buffer.from(JSON.stringify(json))));
}

describe("a query", () => {
  it.each<[string, object]>([
    ["widgetId=a", { widgetId: "a" }],
    ["widgetId=a%26b+c%C3%A9", { widgetId: "a&b cé" }],
    ["widgetId=a=b", { widgetId: "a=b" }],
    ["widgetId=12&limit=-7&before=1794718132064", { widgetId: "12", limit: -7, before: 1_794_718_132_064 }],
    ["widgetId=a&enabled=true&count=4294967295", { widgetId: "a", enabled: true, count: 4_294_967_295 }],
    ["enabled=false&widgetId=true", { widgetId: "true", enabled: false }],
    ["widgetId=a&colours=red&sizes=1&colours=blue", { widgetId: "a", colours: ["red", "blue"], sizes: [1] }],
    ["widgetId=a&limit=1e1", { widgetId: "a", limit: 10 }],
  ])("%s is the message %o", (query, json) => {
    expect(validated(request, decodeQuery(request, query))).toEqual(readJson(json));
  });

  it.each<[string, string]>([
    ["", "widgetId: is required and must not be empty"],
    ["widgetId=", "widgetId: is required and must not be empty"],
    ["widgetId=a&widgetId=a", "has the same field twice"],
    ["widgetId=a&", "has a parameter without a name"],
    [`widgetId=a&=${CANARY}`, "has a parameter without a name"],
    [`widget_id=${CANARY}`, "has an unknown field; did you mean widgetId?"],
    [`widgetId=a&${CANARY}=1`, `has an unknown field ${known}`],
    [`widgetId=a&__proto__=${CANARY}`, `has an unknown field ${known}`],
    ["widgetId=a&enabled=1", "enabled: must be a boolean"],
    ["widgetId=a&enabled", "enabled: must be a boolean"],
    ["widgetId=a&enabled=TRUE", "enabled: must be a boolean"],
    ["widgetId=a&limit=", "limit: must be a number"],
    [`widgetId=a&limit=${CANARY}`, "limit: must be a number"],
    ["widgetId=a&limit=%201", "limit: must be a number"],
    ["widgetId=a&limit=0x10", "limit: must be a number"],
    ["widgetId=a&limit=007", "limit: must be a number"],
    ["widgetId=a&limit=null", "limit: must be a number"],
    ["widgetId=a&limit=1.5", "limit: must be a whole number"],
    ["widgetId=a&limit=101", "limit: must be less than or equal to 100"],
    ["widgetId=a&limit=2147483648", "limit: must be between -2147483648 and 100"],
    ["widgetId=a&count=-1", "count: must be between 0 and 4294967295"],
    ["widgetId=a&before=9007199254740993", "before: must be between -9007199254740991 and 9007199254740991"],
    ["widgetId=a&before=1e999", "before: must be a finite number"],
    ["widgetId=a&colours=a&colours=b&colours=c", "colours: must contain no more than 2 item(s)"],
    [`widgetId=a&sizes=1&sizes=${CANARY}`, "sizes[1]: must be a number"],
    [`widgetId=%zz${CANARY}`, "has a query that is not percent-encoded UTF-8"],
    [`widgetId=%ff${CANARY}`, "has a query that is not percent-encoded UTF-8"],
    [`widgetId=a%00${CANARY}`, "widgetId: must not contain the NUL character"],
    [`widgetId=a&secret=${CANARY}`, secretRefused],
    ["widgetId=a&secret=", secretRefused],
    [
      `widgetId=a&limit=x&enabled=y&secret=${CANARY}`,
      `${secretRefused}; limit: must be a number; enabled: must be a boolean`,
    ],
  ])("%s is refused: %s", (query, message) => {
    expect(told(refusalOf(() => validated(request, decodeQuery(request, query))))).toBe(message);
  });

  it("says what a body of JSON says, for every request that both can hold", () => {
    const text = (lengthMin: number) => fc.string({ minLength: lengthMin, maxLength: 30, unit: "grapheme" });
    const requests = fc.record(
      {
        widgetId: text(1),
        enabled: fc.boolean(),
        limit: fc.integer({ min: -1000, max: 200 }),
        before: fc.integer(),
        colours: fc.array(text(0), { minLength: 1, maxLength: 3 }),
      },
      { requiredKeys: ["widgetId"] },
    );
    const seen = (run: () => Message) => {
      const outcome = outcomeOf(run);
      return outcome instanceof Error ? outcome.message : toJson(request, outcome);
    };
    fc.assert(
      fc.property(requests, (json) => {
        const pairs = Object.entries(json).flatMap(([name, value]) =>
          [value].flat().map((each) => `${name}=${encodeURIComponent(each)}`),
        );
        expect(seen(() => validated(request, decodeQuery(request, pairs.join("&"))))).toEqual(
          seen(() => readJson(json)),
        );
      }),
    );
  });
});
