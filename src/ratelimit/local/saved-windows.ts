import { closeSync, fsyncSync, mkdirSync, openSync, readFileSync, renameSync, rmSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import type { SavedWindow } from "../../domain/window-rows.ts";

/** The windows of a replica that has ended, for the one that takes its place. */
export interface SavedWindows {
  /** The name under which the others know its counts. */
  readonly replica: string;
  readonly windows: Iterable<SavedWindow>;
}

const version = 1;
const chunkLines = 10_000;

/**
 * Writes the file whole or not at all; none where there is nothing to save. One line per window, so that a million of
 * them need no giant string.
 */
export function saveWindows(file: string, { replica, windows }: SavedWindows, nowMs: number): void {
  const unfinished = `${file}.new`;
  let handle: number | undefined;
  let lines = [JSON.stringify({ version, replica, savedAtMs: nowMs })];
  try {
    for (const window of windows) {
      if (handle === undefined) {
        mkdirSync(dirname(file), { recursive: true });
        handle = openSync(unfinished, "w", 0o600);
      }
      lines.push(JSON.stringify(window));
      if (lines.length < chunkLines) continue;
      writeSync(handle, `${lines.join("\n")}\n`);
      lines = [];
    }
    if (handle === undefined) return;
    writeSync(handle, lines.join("\n"));
    fsyncSync(handle);
  } finally {
    if (handle !== undefined) closeSync(handle);
  }
  renameSync(unfinished, file);
}

/**
 * Takes the file away and reads it: two replicas can never take over the same counts. Answers undefined when there is
 * none; throws when it cannot be read. A clock that was set back in the meantime makes windows last longer, never end
 * sooner.
 */
export function takeSavedWindows(file: string, nowMs: number): SavedWindows | undefined {
  const taken = `${file}.taken-${process.pid}`;
  try {
    renameSync(file, taken);
  } catch (error) {
    // Nor is there one where the folder itself is not.
    if (["ENOENT", "ENOTDIR"].includes((error as NodeJS.ErrnoException).code ?? "")) return undefined;
    throw error;
  }
  try {
    const [head, ...lines] = readFileSync(taken, "utf8").split("\n");
    const header = JSON.parse(head ?? "") as { version: number; replica: string; savedAtMs: number };
    if (header.version !== version) throw new Error("it was written by another version");
    const goneMs = Math.max(0, nowMs - header.savedAtMs);
    const windows = lines.filter(Boolean).map((line) => aged(JSON.parse(line) as SavedWindow, goneMs));
    return { replica: header.replica, windows: windows.filter(isOpen) };
  } finally {
    rmSync(taken, { force: true });
  }
}

function aged(window: SavedWindow, goneMs: number): SavedWindow {
  return {
    ...window,
    mineEndsInMs: window.mineEndsInMs - goneMs,
    shareEndsInMs: window.shareEndsInMs - goneMs,
  };
}

function isOpen({ mineEndsInMs, shareEndsInMs }: SavedWindow): boolean {
  return mineEndsInMs > 0 || shareEndsInMs > 0;
}
