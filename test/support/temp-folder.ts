import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

/** A new folder, gone when the test is, or at another end. */
export function tempFolder(atEnd: (undo: () => void) => void = (undo) => onTestFinished(undo)): string {
  const path = mkdtempSync(join(tmpdir(), "latchkey-test-"));
  atEnd(() => rmSync(path, { recursive: true, force: true }));
  return path;
}
