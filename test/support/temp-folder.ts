import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

/** A new folder, gone when the test is. */
export function tempFolder(): string {
  const path = mkdtempSync(join(tmpdir(), "latchkey-test-"));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}
