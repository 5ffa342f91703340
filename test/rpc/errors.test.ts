import { readFileSync } from "node:fs";
import { Code } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { outcomeStatus } from "../../gen/latchkey/v1/client.ts";
import { docsOf, type ErrorCode, errorCodes } from "../../src/rpc/api-error.ts";
import { ERRORS } from "../../tools/protoc-gen-latchkey/http-facts.ts";

const page = readFileSync(new URL("../../docs/errors.md", import.meta.url), "utf8");
const openApi = JSON.parse(readFileSync(new URL("../../gen/openapi.json", import.meta.url), "utf8"));

/** Heading and text of each section. */
const sections = new Map(
  page
    .split(/^## /m)
    .slice(1)
    .map((section) => [section.slice(0, section.indexOf("\n")), section.slice(section.indexOf("\n"))]),
);
const codes = Object.keys(errorCodes) as ErrorCode[];

describe("the error codes", () => {
  it("are those that the OpenAPI document is generated with", () => {
    const statuses = Object.entries(errorCodes).map(([code, { status }]) => ({ code, status }));
    expect(ERRORS.map(({ code, status }) => ({ code, status }))).toEqual(statuses);
  });

  it("each have one section in docs/errors.md, in the same order, and no other section looks like one", () => {
    expect([...sections.keys()].filter((heading) => /^[A-Z_]+$/.test(heading))).toEqual(codes);
  });

  it.each(codes)("%s is explained with its status, its gRPC code, when and what to do", (code) => {
    const { status, rpc } = errorCodes[code];
    const [facts, when, what] = (sections.get(code) ?? "").trim().split("\n\n");
    expect(facts?.replace(/;.*/, ".")).toBe(`HTTP ${status}, gRPC \`${grpcName(rpc)}\`.`);
    expect(when).toMatch(/\w/);
    expect(what).toMatch(/\w/);
    expect(docsOf(code)).toBe(`/docs#${code}`);
  });
});

describe("the verification outcomes", () => {
  it("are each explained in docs/errors.md", () => {
    const rows = (sections.get("Verification outcomes") ?? "").matchAll(
      /^\| `([A-Z_]+)` \| (true|false) \| .+ \| .+ \|$/gm,
    );
    const explained = [...rows].map(([, code, valid]) => [code, valid]);
    const known: string[] = openApi.components.schemas.VerifyKeyResponse.properties.code.enum;
    expect(explained.map(([code]) => code).sort()).toEqual([...known].sort());
    expect(Object.keys(outcomeStatus).sort()).toEqual([...known].sort());
    expect(explained.filter(([, valid]) => valid === "true")).toEqual([["VALID", "true"]]);
  });
});

/** `InvalidArgument` is `INVALID_ARGUMENT` in gRPC's own spelling. */
function grpcName(code: Code): string {
  return Code[code].replace(/(?<=[a-z])(?=[A-Z])/g, "_").toUpperCase();
}
