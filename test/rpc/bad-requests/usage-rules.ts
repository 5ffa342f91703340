import type { JsonObject } from "@bufbuild/protobuf";
import { type BadRequest, bodyWithout, broken, goodBodyOf, textCanary } from "./bad-request.ts";
import { long } from "./rules.ts";

/* Messages of `usage.getSpending` that break a rule. */

const hour = 3_600_000;
const day = 24 * hour;
const many = Array.from({ length: 101 }, (_, i) => `${i}`);

const badFields: [string, string, JsonObject][] = [
  ["101 keyIds", "keyIds", { keyIds: many }],
  ["the same of keyIds twice", "keyIds", { keyIds: [textCanary, textCanary] }],
  ["an empty one of keyIds", "keyIds[0]", { keyIds: [""] }],
  ["one of keyIds of 65 characters", "keyIds[0]", { keyIds: [long(65)] }],
  ["101 ownerIds", "ownerIds", { keyIds: [], ownerIds: many }],
  ["one of ownerIds of 256 characters", "ownerIds[0]", { keyIds: [], ownerIds: [long(256)] }],
  ["keyIds and ownerIds", "keyIds", { ownerIds: [textCanary] }],
  ["neither keyIds nor ownerIds", "keyIds", { keyIds: [] }],
  ["another granularity", "granularity", { granularity: textCanary }],
  ["an end that is the start", "end", { end: hour }],
  ["an end before the start", "end", { start: 3 * hour }],
  ...[0, -hour, hour + 0.5, 253402300800000].flatMap((ms): [string, string, JsonObject][] => [
    [`start ${ms}`, "start", { start: ms }],
    [`end ${ms}`, "end", { start: 1, end: ms }],
  ]),
  ["a start within an hour", "start", { start: hour + 1 }],
  ["an end within an hour", "end", { end: 2 * hour + 1, granularity: "hour" }],
  ["a start within a day", "start", { start: hour, end: day, granularity: "day" }],
  ["a start within a month", "start", { start: day, end: 31 * day, granularity: "month" }],
  ["745 hours", "end", { end: 746 * hour, granularity: "hour" }],
  ["732 days", "end", { start: day, end: 733 * day, granularity: "day" }],
  ["61 months", "end", { start: Date.UTC(2020, 0, 1), end: Date.UTC(2025, 1, 1), granularity: "month" }],
  [
    "more buckets of all keys than there may be",
    "granularity",
    { keyIds: many.slice(0, 14), start: day, end: 732 * day, granularity: "day" },
  ],
];

export const usageRules: BadRequest[] = [
  ...badFields.map(([name, field, fields]) =>
    broken(name, "getSpending", field, { ...goodBodyOf("getSpending"), ...fields }),
  ),
  ...["start", "end"].map((field) => broken(`no ${field}`, "getSpending", field, bodyWithout("getSpending", field))),
];
