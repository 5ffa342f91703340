import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { npmPackage } from "../support/npm-programs.ts";
import { contents, document } from "./openapi-document.ts";

/** Of the two packages, what is used here. */
interface Redocly {
  createConfig(config: { extends: string[] }): Promise<object>;
  lintFromString(options: { source: string; config: object }): Promise<{ ruleId: string; message: string }[]>;
}
type Validate = ((value: unknown) => boolean) & { errors: unknown };
interface Ajv {
  addSchema(schema: object, id: string): void;
  compile(schema: object): Validate;
}

let redocly: Redocly;
let ajv: Ajv;
beforeAll(async () => {
  const packages = npmPackage("@redocly/openapi-core", "2.64.0");
  redocly = await import(join(packages, "@redocly/openapi-core/lib/index.js"));
  const { default: Ajv2020 } = await import(join(packages, "@redocly/ajv/dist/2020.js"));
  ajv = new (Ajv2020.default ?? Ajv2020)({ strict: false, validateFormats: false });
  ajv.addSchema(document, "document");
});

describe("the OpenAPI document", () => {
  async function lint(linted: object): Promise<string[]> {
    const config = await redocly.createConfig({ extends: ["recommended"] });
    const problems = await redocly.lintFromString({ source: JSON.stringify(linted), config });
    return problems.map(({ ruleId, message }) => `${ruleId}: ${message}`);
  }

  it("passes the recommended rules of a linter, which refuses it without servers", async () => {
    expect(await lint(document)).toEqual([]);
    const { servers: _, ...without } = document;
    expect(await lint(without)).toEqual([expect.stringMatching(/^no-empty-servers: /)]);
  });
});

describe("the examples", () => {
  it.each(contents)("$name is what its schema asks for", ({ schema, example }) => {
    const validate = ajv.compile({ $ref: `document${schema.$ref}` });
    expect(validate(example), JSON.stringify(validate.errors)).toBe(true);
    for (const field of Object.keys(example ?? {})) {
      // No field has a list of lists as its value.
      expect(validate({ ...example, [field]: [[]] }), field).toBe(false);
    }
  });
});
