import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { pack } from "../../tools/pack.ts";
import { type Block, newcomersPages, readBlocks } from "../docs/blocks.ts";
import { Reader, runLanguages } from "../docs/reader.ts";
import { bash } from "../support/documented-steps.ts";
import { linkPackages, userEnvironment } from "../support/installed-package.ts";
import { startLatchkey } from "../support/latchkey-process.ts";
import { atTestEnd } from "../support/test-end.ts";

/** npm takes from its cache what is there. */
const environment = { ...userEnvironment, npm_config_prefer_offline: "true", npm_config_audit: "false" };

const blocksOf = (page: string) =>
  readBlocks(page).filter(({ language, untested }) => untested === undefined && runLanguages.includes(language));

// On one engine: this is about what is written, and about the packages.
describe("a newcomer with nothing but the packages", () => {
  const folder = mkdtempSync(join(tmpdir(), "latchkey-newcomer-"));
  const project = join(folder, "weather");
  const [quickstart, readme] = newcomersPages;
  const [toInstall, toServe, ...others] = blocksOf(quickstart);

  beforeAll(async () => {
    await pack(join(folder, "latchkey/packed"));
    await bash(folder, toInstall?.text ?? "", { env: environment });
    // The README has readers fetch it.
    linkPackages(project, ["@bufbuild/buf", ".bin/buf"]);
  }, 120_000);
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it.each([
    [quickstart, others],
    [readme, blocksOf(readme)],
  ])("can follow %s word by word", async (page, blocks: readonly Block[]) => {
    const script = `cd '${project}' && rm -rf data && exec ${toServe?.text}`;
    const { baseUrl, pid } = await startLatchkey({ PATH: userEnvironment.PATH }, ["bash", "-ec", script]);
    atTestEnd(() => killChildren(pid));
    const rootKey = readFileSync(join(project, "data/root-key"), "utf8").trim();
    const reader = await Reader.begin(project, { baseUrl, rootKey });
    for (const [i, block] of blocks.entries()) {
      expect(await reader.follow(block, blocks[i + 1]), `${page}:${block.line}`).toEqual([]);
    }
    expect(blocks.length).toBeGreaterThan(6);
  });
});

/** What `npx` has started, which goes on when that is killed. */
function killChildren(pid: number): void {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean).map(Number);
  for (const child of children) {
    killChildren(child);
    process.kill(child, "SIGKILL");
  }
}
