import { existsSync } from "node:fs";
import { dirname } from "node:path";

/** The path, or the nearest folder above it that exists. */
export function nearestThatExists(path: string): string {
  return existsSync(path) || dirname(path) === path ? path : nearestThatExists(dirname(path));
}
