import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";

export const root = join(import.meta.dirname, "../..");

/** Text files below a folder of the repository, by their path from its root. */
export function readTree(folder: string, ending: string): Map<string, string> {
  const entries = readdirSync(join(root, folder), { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile() && entry.name.endsWith(ending));
  return new Map(
    files.map((entry) => {
      const path = join(entry.parentPath, entry.name);
      return [relative(root, path), readFileSync(path, "utf8")];
    }),
  );
}

export function readText(path: string): string {
  return readFileSync(join(root, path), "utf8");
}
