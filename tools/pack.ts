// `npm run pack`: both packages as they are published, into the folder `packed` or the one that is named.
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
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

export async function pack(destination: string): Promise<{ latchkey: Packed; client: Packed }> {
  mkdirSync(destination, { recursive: true });
  const folder = mkdtempSync(join(tmpdir(), "latchkey-client-"));
  try {
    await buildClient(folder);
    return { latchkey: packFolder(root, destination), client: packFolder(folder, destination) };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Packs the package in the folder. What it has to make before, its `prepack` makes. */
export function packFolder(folder: string, destination: string): Packed {
  const output = execFileSync("npm", ["pack", "--json", "--pack-destination", destination], {
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
