import type { JsonObject } from "@bufbuild/protobuf";
import { type BadRequest, bodyWithout, broken, goodBodyOf } from "./bad-request.ts";
import { long } from "./rules.ts";

/* Messages of `ratelimits.limit` that break a rule. */

const badFields: [string, string, JsonObject][] = [
  ["empty namespace", "namespace", { namespace: "" }],
  ["namespace of 65 characters", "namespace", { namespace: long(65) }],
  ["empty identifier", "identifier", { identifier: "" }],
  ["identifier of 256 characters", "identifier", { identifier: long(256) }],
  ["empty apiId", "apiId", { apiId: "" }],
  ["apiId of 256 characters", "apiId", { apiId: long(256) }],
  ["limit 0", "limit", { limit: 0 }],
  ["limit -1", "limit", { limit: -1 }],
  ["duration 999", "duration", { duration: 999 }],
  ["duration 2592000001", "duration", { duration: 2_592_000_001 }],
  ["cost -1", "cost", { cost: -1 }],
  ["cost -7391", "cost", { cost: -7391 }],
];

/** As many as 64 KB have room for. Rules of such a list once cost a third of a second, or overflowed the stack. */
const empty = Array(15_000).fill({});
const tooMany = { says: "must contain no more than" };

export const limitRules: BadRequest[] = [
  ...(["verifyKey", "explainKey", "createKey", "updateKey", "createOwner", "updateOwner"] as const).map((call) =>
    broken("15 000 empty ratelimits", call, "ratelimits", { ...goodBodyOf(call), ratelimits: empty }, tooMany),
  ),
  broken("15 000 empty keys", "importKeys", "keys", { ...goodBodyOf("importKeys"), keys: empty }, tooMany),
  ...badFields.map(([name, field, fields]) => broken(name, "limit", field, { ...goodBodyOf("limit"), ...fields })),
  ...["namespace", "identifier", "limit", "duration"].map((field) =>
    broken(`no ${field}`, "limit", field, bodyWithout("limit", field)),
  ),
];
