import { existsSync } from "node:fs";
import { dirname } from "node:path";

export function nearestThatExists(path: string): string {
  return existsSync(path) || dirname(path) === path ? path : nearestThatExists(dirname(path));
}
