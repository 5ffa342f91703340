// `npm run package`: both packages as they are published, into the folder `packed` or the one that is named.
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { buildProgram } from "./build.ts";
import { buildClient } from "./build-client.ts";

const root = join(import.meta.dirname, "..");

export interface PackedFile {
  readonly path: string;
  readonly mode: number;
}

export interface Packed {
  readonly tarball: string;
  readonly files: readonly PackedFile[];
}

/** A package with the source files that its scripts were made of. */
export interface PackedBuild extends Packed {
  readonly bundled: readonly string[];
}

export async function pack(destination: string): Promise<{ latchkey: PackedBuild; client: PackedBuild }> {
  return { latchkey: await packProgram(destination), client: await packMade(destination, buildClient) };
}

/** Builds `dist` again, and packs it. */
export function packProgram(destination: string): Promise<PackedBuild> {
  return packMade(destination, async (folder) => {
    const bundled = await buildProgram(join(root, "dist"));
    const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
      files: string[];
      scripts?: object;
      devDependencies?: object;
    };
    const shipped = manifest.files.filter((name) => !name.startsWith("!")).map((name) => name.split("/")[0] as string);
    for (const name of ["README.md", "LICENSE", ...shipped])
      cpSync(join(root, name), join(folder, name), { recursive: true });
    // In a clone the command is a launcher, which runs on the Node that the clone brings. The package does without it, and
    // says which Node it needs. What only developers use stays here.
    const { scripts: _, devDependencies: __, ...shown } = manifest;
    const packed = { ...shown, bin: { latchkey: "dist/latchkey.js" }, engines: { node: ">=24" } };
    writeFileSync(join(folder, "package.json"), `${JSON.stringify(packed, undefined, 2)}\n`);
    return bundled;
  });
}

async function packMade(destination: string, make: (folder: string) => Promise<string[]>): Promise<PackedBuild> {
  mkdirSync(destination, { recursive: true });
  const folder = mkdtempSync(join(tmpdir(), "latchkey-package-"));
  try {
    const bundled = await make(folder);
    return { ...packFolder(folder, destination), bundled };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Packs the package in the folder as it is. */
export function packFolder(folder: string, destination: string): Packed {
  const output = execFileSync("npm", ["pack", "--json", "--ignore-scripts", "--pack-destination", destination], {
    cwd: folder,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
  });
  const [packed] = JSON.parse(output) as [{ filename: string; files: PackedFile[] }];
  return { tarball: join(destination, packed.filename), files: packed.files };
}

if (import.meta.main) {
  const packed = await pack(resolve(process.argv[2] ?? "packed"));
  for (const { tarball, files } of Object.values(packed)) console.log(`${tarball}: ${files.length} files`);
}
