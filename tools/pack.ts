// `npm run pack`: both packages as they are published, into the folder `packed` or the one that is named.
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
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
  mkdirSync(destination, { recursive: true });
  const folder = mkdtempSync(join(tmpdir(), "latchkey-client-"));
  try {
    const program = await buildProgram(join(root, "dist"));
    const client = await buildClient(folder);
    return {
      latchkey: { ...packFolder(root, destination, ["--ignore-scripts"]), bundled: program },
      client: { ...packFolder(folder, destination), bundled: client },
    };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Packs the package in the folder. What it has to make before, its `prepack` makes, unless `options` say otherwise. */
export function packFolder(folder: string, destination: string, options: readonly string[] = []): Packed {
  const output = execFileSync("npm", ["pack", "--json", "--pack-destination", destination, ...options], {
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
