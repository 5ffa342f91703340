import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** A package whose code is in bundled files. */
export interface BundledPackage {
  /** Its folder, from the root of the repository: its name in package-lock.json too. */
  readonly folder: string;
  readonly name: string;
  readonly version: string;
  readonly license: string;
  /** Those of its files that are bundled. */
  readonly files: readonly string[];
}

/** The packages that the bundled files are of, sorted by folder. Throws where one has no licence. */
export function findBundledPackages(root: string, bundled: readonly string[]): BundledPackage[] {
  const filesByFolder = new Map<string, Set<string>>();
  for (const file of bundled) {
    const [, folder] = /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(file) ?? [];
    if (folder === undefined) continue;
    filesByFolder.set(folder, (filesByFolder.get(folder) ?? new Set()).add(file));
  }
  return [...filesByFolder.keys()].sort().map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8")) as {
      name: string;
      version: string;
      license?: string;
    };
    if (license === undefined) throw new Error(`${name} has no licence that could be named`);
    return { folder, name, version, license, files: [...(filesByFolder.get(folder) ?? [])] };
  });
}

/**
 * The licences of all packages that the bundled files are of, each with its text. Throws where a package has none: it
 * may not be shipped then.
 */
export function describeLicences(root: string, bundled: readonly string[]): string {
  const sections = findBundledPackages(root, bundled).map((found) => describePackage(root, found));
  const intro = "The files of this folder contain code of the packages below, each under its own licence.";
  return `${[intro, ...sections.sort()].join(`\n\n${"=".repeat(80)}\n\n`)}\n`;
}

function describePackage(root: string, { folder, name, version, license, files }: BundledPackage): string {
  const path = join(root, folder);
  const texts = [...licenceTexts(path), ...new Set(files.flatMap((file) => noticeOf(join(root, file))))];
  // Apache's asks for a copy of its text, which is the same for all, and Latchkey's own.
  if (/Apache-2\.0/.test(license) && !texts.some((text) => text.includes("TERMS AND CONDITIONS"))) {
    texts.push(readFileSync(join(root, "LICENSE"), "utf8"));
  }
  if (texts.length === 0) throw new Error(`${name} has no licence that could be named`);
  return [`${name} ${version}: ${license}`, ...texts.map((text) => text.trim())].join("\n\n");
}

/** Files of their own, or else the part of the README. */
function licenceTexts(path: string): string[] {
  const names = readdirSync(path);
  const read = (name: string) => readFileSync(join(path, name), "utf8");
  const texts = names.filter((name) => /^(licen[cs]e|copying|notice)/i.test(name)).map(read);
  if (texts.length > 0) return texts;
  const readme = names.find((name) => /^readme/i.test(name));
  const part = readme === undefined ? "" : (read(readme).split(/^#+ *licen[cs]e/im)[1] ?? "");
  // Many only name the licence there, without its text.
  return /Permission is hereby granted/.test(part) ? [part] : [];
}

/** What the head of a file says of its copyright; its licence too, where code was taken over from elsewhere. */
function noticeOf(file: string): string[] {
  const [head = ""] = /^(\/\/.*\n)+/.exec(readFileSync(file, "utf8")) ?? [];
  return /Copyright/.test(head) ? [head.replaceAll(/^\/\/ ?/gm, "")] : [];
}
