import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { buildClient } from "../../tools/build-client.ts";
import { bash } from "../support/documented-steps.ts";
import { startTestServer } from "../support/in-process-server.ts";
import { linkPackages } from "../support/installed-package.ts";
import { type Block, pages, readBlocks } from "./blocks.ts";
import { differences } from "./same-answer.ts";

const exec = promisify(execFile);
const documentedUrl = "http://127.0.0.1:8080";
const run = ["sh", "ts", "js", "json"];

/** Blocks that say why they are not run. One more is a decision. */
const untestedMax = 12;

/** What stands around a piece of a program. Each piece is known by a part of it. */
const around: readonly { readonly part: string; readonly before: string; readonly after?: string }[] = [
  {
    part: 'app.get("/forecast"',
    before:
      'import express from "express"; const app = express(); const listArchive = (_, response) => response.json([]);',
    after: `
      const server = app.listen(0, "127.0.0.1", async () => {
        const { status } = await fetch(\`http://127.0.0.1:\${server.address().port}/forecast\`);
        console.log(status);
        process.exit(status === 401 ? 0 : 1);
      });`,
  },
  {
    part: "forecast.read",
    before: 'const key = "nonsense";',
    after: "if (valid !== false || degraded) process.exit(1);",
  },
  { part: "loadPackageDefinition", before: "", after: "setTimeout(() => process.exit(), 500);" },
  { part: "listKeys({ ownerId", before: own("latchkey") },
  { part: "LATCHKEY_ROOT_KEY", before: 'import { createClient } from "@latchkey/client";' },
];

function own(name: string): string {
  const options = `{ baseUrl: "${documentedUrl}", rootKey: process.env.LATCHKEY_ROOT_KEY }`;
  return `import { createClient } from "@latchkey/client"; const ${name} = createClient(${options});`;
}

describe("the documentation", () => {
  const folder = mkdtempSync(join(tmpdir(), "latchkey-docs-"));
  beforeAll(async () => {
    await buildClient(join(folder, "node_modules/@latchkey/client"));
    linkPackages(folder, ["express", "@bufbuild/buf", "@grpc/grpc-js", "@grpc/proto-loader", ".bin"]);
    writeFileSync(join(folder, "package.json"), JSON.stringify({ name: "project", type: "module" }));
    mkdirSync(join(folder, "data"));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const ofAll = pages.flatMap(readBlocks);

  it("says of every block in it that is not run why", () => {
    const reasons = ofAll.flatMap(({ untested }) => untested ?? []);
    for (const reason of reasons) expect(reason).toMatch(/\w+ \w+/);
    expect(reasons.length).toBeLessThanOrEqual(untestedMax);
    expect(ofAll.filter(({ language }) => run.includes(language)).length).toBeGreaterThan(40);
    expect(readBlocks("docs/operations.md").filter(({ isStep }) => isStep).length).toBeGreaterThan(8);
  });

  const followed = pages.filter((file) => readBlocks(file).some(isRun));

  it.each(followed)("%s can be followed word by word", async (file) => {
    const { baseUrl, rootKey } = await startTestServer();
    writeFileSync(join(folder, "data/root-key"), rootKey);
    /** What stands in the page, and what it is this time. */
    const learnt = new Map([
      [documentedUrl, baseUrl],
      [new URL(documentedUrl).host, new URL(baseUrl).host],
    ]);
    const here = (text: string) => [...learnt].reduce((done, [from, to]) => done.replaceAll(from, to), text);
    let printed = "";

    const follow = async ({ language, text }: Block, next: Block | undefined): Promise<string[]> => {
      if (language === "sh") {
        for (const command of text.trim().split(/\n(?=\S)/)) {
          const output = await bash(folder, here(command), { env: { HOME: folder, LATCHKEY_ROOT_KEY: rootKey } });
          const { error, key } = Object(parse(output)) as { error?: { message: string }; key?: string };
          if (error && !next?.text.includes('"error"')) return [`${command}: ${error.message}`];
          if (typeof key === "string") learnt.set('"key":"…"', `"key":"${key}"`);
          printed = output;
        }
        return [];
      }
      if (language === "json")
        return differences(parse(text) ?? "no JSON", parse(printed), (from, to) => learnt.set(from, to));
      const piece = around.find(({ part }) => text.includes(part));
      const script = join(folder, language === "ts" ? "piece.ts" : "piece.js");
      writeFileSync(script, here(`${piece?.before ?? ""}\n${text}\n${piece?.after ?? ""}`));
      const env = { ...process.env, LATCHKEY_ROOT_KEY: rootKey };
      printed = (await exec(process.execPath, [script], { cwd: folder, env })).stdout;
      return [];
    };

    const blocks = readBlocks(file).filter(isRun);
    for (const [i, block] of blocks.entries()) {
      const problems = await follow(block, blocks[i + 1]).catch((error: Error) => [`${error.message}`]);
      expect(problems, `${file}:${block.line}`).toEqual([]);
    }
  });

  it("would be found out if an answer were another one", () => {
    const learn = () => {};
    const documented = { keyId: "key_034xlFajWo1s99iLVMs65d", remaining: 99, ratelimit: { reset: 1794718132064 } };
    const came = { keyId: "key_034zzzajWo1s99iLVMs65d", remaining: 99, ratelimit: { reset: 1894718132064 } };
    expect(differences(documented, came, learn)).toEqual([]);
    for (const wrong of [
      { ...came, remaining: 98 },
      { ...came, keyId: "req_034zzzajWo1s99iLVMs65d" },
      { ...came, more: 1 },
      { ...came, ratelimit: { reset: 5 } },
      {},
    ])
      expect(differences(documented, wrong, learn)).not.toEqual([]);
  });
});

function isRun({ language, untested, isStep }: Block): boolean {
  return run.includes(language) && untested === undefined && !isStep;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
