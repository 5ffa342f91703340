import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildProgram } from "../../tools/build.ts";
import { root } from "./repository.ts";

const variable = "LATCHKEY_TEST_ARTEFACT";

/**
 * Builds the program as it ships, for this process and those that it starts. It is in a folder of its own, so that the
 * test that rebuilds `dist` does not remove it. Returns a function that removes it.
 */
export async function buildArtefact(): Promise<() => void> {
  const folder = mkdtempSync(join(tmpdir(), "latchkey-artefact-"));
  await buildProgram(join(folder, "dist"));
  copyFileSync(join(root, "package.json"), join(folder, "package.json"));
  process.env[variable] = folder;
  return () => rmSync(folder, { recursive: true, force: true });
}

/** Where `buildArtefact` has put `dist`. */
export function artefactFolder(): string {
  const folder = process.env[variable];
  if (folder === undefined) throw new Error("the program was not built: buildArtefact does that");
  return folder;
}

/** The program as it ships. */
export function builtProgram(): string {
  return join(artefactFolder(), "dist/latchkey.js");
}

/** The program as it is written. Node strips it of its types. */
export const sourceProgram = join(root, "src/cli/latchkey.ts");
