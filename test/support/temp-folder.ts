import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { atTestEnd } from "./test-end.ts";

/** A new folder, gone when the test is, or at another end. */
export function tempFolder(atEnd: (undo: () => void) => void = atTestEnd): string {
  const path = mkdtempSync(join(tmpdir(), "latchkey-test-"));
  atEnd(() => rmSync(path, { recursive: true, force: true }));
  return path;
}
