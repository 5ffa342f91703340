// Makes dist, which is what the package ships: the program in a few files, and the OpenAPI document.
import { chmodSync, copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { type BuildOptions, build, type Plugin } from "esbuild";
import { describeLicences } from "./third-party-licences.ts";

const root = join(import.meta.dirname, "..");

/**
 * A file that a module finds beside itself: the program of a thread or process, or something to read. The module ends up
 * in a file of another folder, so all files that are found in this way are put into that folder too.
 */
const fileBeside = /new URL\("(\.[^"]+)", import\.meta\.url\)/g;

/** Packages that are not ES modules expect these two. */
const forCommonJs = `import { createRequire as createRequireHere } from "node:module";
const require = createRequireHere(import.meta.url), __dirname = import.meta.dirname;`;

const common = {
  absWorkingDir: root,
  bundle: true,
  format: "esm",
  sourcemap: "linked",
  // They are in a file of their own.
  legalComments: "none",
  logLevel: "warning",
} satisfies BuildOptions;

/**
 * Bundles the program into the folder, which is emptied first. The program is its `latchkey.js`. Returns the paths of the
 * source files that are in it, from the root of the repository.
 */
export async function buildProgram(folder: string): Promise<string[]> {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const beside = findFilesBeside();
  const { metafile } = await build({
    ...common,
    entryPoints: ["src/cli/latchkey.ts", ...beside.filter(isModule)],
    outdir: folder,
    // All in one folder: see `fileBeside`.
    entryNames: "[name]",
    chunkNames: "[name]-[hash]",
    // Dynamic imports stay in separate files, and threads share files with the process.
    splitting: true,
    platform: "node",
    target: "node24",
    // An optional companion of pg, which is not installed.
    external: ["pg-native"],
    // The names of bundled files do not depend on where node_modules really is.
    preserveSymlinks: true,
    banner: { js: forCommonJs },
    plugins: [keepFilesBeside],
    metafile: true,
  });
  for (const file of beside.filter((path) => !isModule(path))) copyFileSync(file, join(folder, basename(file)));
  const bundled = Object.values(metafile.outputs).flatMap(({ inputs }) => Object.keys(inputs));
  writeFileSync(join(folder, "THIRD-PARTY-LICENSES"), describeLicences(root, bundled));
  chmodSync(join(folder, "latchkey.js"), 0o755);
  return bundled;
}

const keepFilesBeside: Plugin = {
  name: "files that modules find beside themselves",
  setup({ onLoad }) {
    onLoad({ filter: /\/src\/.*\.ts$/ }, ({ path }) => ({
      contents: readFileSync(path, "utf8").replace(
        fileBeside,
        (_, file: string) => `new URL("./${basename(file).replace(/\.ts$/, ".js")}", import.meta.url)`,
      ),
      loader: "ts",
    }));
  },
};

/** All such files of the sources, each by its full path. */
function findFilesBeside(): string[] {
  const found = new Set<string>();
  for (const entry of readdirSync(join(root, "src"), { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const text = readFileSync(join(entry.parentPath, entry.name), "utf8");
    for (const [, file] of text.matchAll(fileBeside)) found.add(resolve(entry.parentPath, file as string));
  }
  const names = new Set([...found].map((file) => basename(file)));
  if (names.size < found.size) throw new Error(`two files would have one name: ${[...found].join(", ")}`);
  return [...found];
}

function isModule(path: string): boolean {
  return path.endsWith(".ts");
}

if (import.meta.main) await buildProgram(join(root, "dist"));
