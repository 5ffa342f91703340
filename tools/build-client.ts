// Makes the package @latchkey/client in a folder: ES modules and CommonJS with types, the proto files, README and licence.
import { execFileSync } from "node:child_process";
import { copyFileSync, cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";
import { writeProtoFolder } from "./proto-folder.ts";

const root = join(import.meta.dirname, "..");

/** By the names under which they are imported. */
export const clientEntryPoints = {
  index: "src/sdk/index.ts",
  express: "src/sdk/guard/express.ts",
  fastify: "src/sdk/guard/fastify.ts",
  hono: "src/sdk/guard/hono.ts",
  web: "src/sdk/guard/web.ts",
  connect: "src/sdk/guard/connect.ts",
};

/** Returns the paths of the source files that are in its scripts, from the root of the repository. */
export async function buildClient(folder: string): Promise<string[]> {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const file of ["package.json", "README.md"]) copyFileSync(join(root, "client", file), join(folder, file));
  copyFileSync(join(root, "LICENSE"), join(folder, "LICENSE"));
  writeProtoFolder(join(folder, "proto"));

  const esm = join(folder, "dist/esm");
  const cjs = join(folder, "dist/cjs");
  const builds = [await buildScripts(esm, "esm"), await buildScripts(cjs, "cjs")];
  writeTypes(join(esm, "types"));
  cpSync(join(esm, "types"), join(cjs, "types"), { recursive: true });
  writeFileSync(join(cjs, "package.json"), `${JSON.stringify({ type: "commonjs" })}\n`);
  return builds.flatMap(({ metafile }) => Object.values(metafile.outputs).flatMap(({ inputs }) => Object.keys(inputs)));
}

/** It needs no Node: it runs wherever there is `fetch`. Each file stands alone, so that each can be loaded alone. */
export function buildScripts(folder: string, format: "esm" | "cjs") {
  return build({
    absWorkingDir: root,
    entryPoints: clientEntryPoints,
    bundle: true,
    platform: "neutral",
    target: "es2022",
    external: ["@connectrpc/connect"],
    logLevel: "warning",
    metafile: true,
    outdir: folder,
    format,
  });
}

function writeTypes(folder: string): void {
  execFileSync(join(root, "node_modules/.bin/tsc"), ["-p", "tsconfig.build.json", "--outDir", folder], {
    cwd: root,
    stdio: "inherit",
  });
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    const text = readFileSync(path, "utf8");
    writeFileSync(path, text.replace(/(from|import\() ?"(\.[^"]+)\.ts"/g, '$1 "$2.js"'));
  }
}
