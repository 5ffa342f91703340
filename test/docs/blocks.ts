import { readdirSync } from "node:fs";
import { join } from "node:path";
import { readSteps } from "../support/documented-steps.ts";
import { incidentPages, readIncidentPage } from "../support/incident-pages.ts";
import { readText, root } from "../support/repository.ts";

/** A fenced block of a page. */
export interface Block {
  readonly file: string;
  readonly line: number;
  readonly language: string;
  /** Why it is not run. */
  readonly untested: string | undefined;
  /** Run by a test of its own: a step of a walk-through. */
  readonly isStep: boolean;
  readonly text: string;
}

/** The pages that people follow. Decisions are read, not followed. */
export const pages = [
  "README.md",
  "client/README.md",
  ...readdirSync(join(root, "docs"))
    .filter((name) => name.endsWith(".md"))
    .map((name) => `docs/${name}`),
];

const fence = /^( *)```(\w+)(?: untested: ([^\n]+))?\n(.*?)^\1```$/gms;
/** What a newcomer follows, by a test of its own: from a folder that is empty, with the packages. */
export const newcomersPages = ["docs/quickstart.md", "README.md"] as const;

/** What tests of their own follow, by the headings that they read. */
const followed = ["Several regions", "Losing the ledger's region", "Replacing the root key", "Upgrading"];
const steps = new Set([
  ...followed.flatMap(readSteps).map(({ script }) => script),
  ...incidentPages.map((heading) => `${readIncidentPage(heading).command}\n`),
]);

export function readBlocks(file: string): Block[] {
  const page = readText(file);
  return [...page.matchAll(fence)].map(({ index, 1: indent, 2: language = "", 3: untested, 4: text = "" }) => ({
    file,
    line: page.slice(0, index).split("\n").length,
    language,
    untested,
    isStep: newcomersPages.some((page) => page === file) || steps.has(text),
    text: text.replaceAll(new RegExp(`^${indent}`, "gm"), ""),
  }));
}
