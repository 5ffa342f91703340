import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { buildClient } from "../../tools/build-client.ts";
import { startTestServer } from "../support/in-process-server.ts";
import { linkPackages } from "../support/installed-package.ts";
import { readText } from "../support/repository.ts";
import { type Block, pages, readBlocks } from "./blocks.ts";
import { Reader, runLanguages } from "./reader.ts";
import { differences } from "./same-answer.ts";

/** Blocks that say why they are not run. One more is a decision. */
const untestedMax = 12;

/** Pages that are read in one go: in five and in ten minutes. */
const wordsMax: Readonly<Record<string, number>> = { "README.md": 1000, "docs/architecture.md": 2500 };

/** Pages that the README leaves to another one. */
const linkedBy: Readonly<Record<string, readonly string[]>> = {
  "docs/proxies.md": ["docs/nginx.md", "docs/caddy.md", "docs/haproxy.md"],
  "docs/architecture.md": [
    "docs/architecture-limits.md",
    "docs/architecture-requests.md",
    "docs/architecture-rooms.md",
    "docs/architecture-store.md",
    "docs/glossary.md",
  ],
};

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
    expect(ofAll.filter(({ language }) => runLanguages.includes(language)).length).toBeGreaterThan(40);
    expect(readBlocks("docs/operations.md").filter(({ isStep }) => isStep).length).toBeGreaterThan(8);
  });

  it("begins with pages that are read in one go", () => {
    expect(findLongPages(readText)).toEqual([]);
  });

  it.each(Object.entries(wordsMax))("would be found too long if %s had more than %i words", (file, max) => {
    const lengthened = (words: number) => (page: string) => {
      const text = readText(page).trim();
      return page === file ? `${text}${" word".repeat(words - countWords(text))}` : text;
    };
    expect(findLongPages(lengthened(max))).toEqual([]);
    expect(findLongPages(lengthened(max + 1))).toEqual([file]);
  });

  it("has no page that a reader of the README cannot find", () => {
    for (const [page, files] of Object.entries(linkedBy)) {
      const text = readText(page);
      expect(files.filter((file) => !text.includes(`](${file.replace("docs/", "")}`))).toEqual([]);
    }
    const linked = [...readText("README.md").matchAll(/\]\((docs\/[\w-]+\.md)/g)].map(([, file]) => file);
    const further = Object.values(linkedBy).flat();
    const lost = pages.filter((file) => file.startsWith("docs/") && !linked.includes(file) && !further.includes(file));
    expect(lost).toEqual([]);
  });

  const followed = pages.filter((file) => readBlocks(file).some(isRun));

  it.each(followed)("%s can be followed word by word", async (file) => {
    const { baseUrl, rootKey } = await startTestServer();
    writeFileSync(join(folder, "data/root-key"), rootKey);
    const reader = await Reader.begin(folder, { baseUrl, rootKey });
    const blocks = readBlocks(file).filter(isRun);
    for (const [i, block] of blocks.entries()) {
      expect(await reader.follow(block, blocks[i + 1]), `${file}:${block.line}`).toEqual([]);
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

function findLongPages(read: (file: string) => string): string[] {
  return Object.keys(wordsMax).filter((file) => countWords(read(file)) > (wordsMax[file] ?? 0));
}

function countWords(text: string): number {
  return text.trim().split(/\s+/).length;
}

function isRun({ language, untested, isStep }: Block): boolean {
  return runLanguages.includes(language) && untested === undefined && !isStep;
}
