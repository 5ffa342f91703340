import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { crc32 } from "node:zlib";
import { describe, expect, it } from "vitest";
import { claimPrivateFolder } from "../../src/cli/compile-cache.ts";
import { builtProgram, sourceProgram } from "../support/artefact.ts";
import { runLatchkey, startLatchkey } from "../support/latchkey-process.ts";
import { root } from "../support/repository.ts";
import { tempFolder } from "../support/temp-folder.ts";

const anotherUser = 54_321;
// Only root can make the folders of another user.
const isRoot = process.getuid?.() === 0;

/** A folder in which only this user can write. */
function home(): string {
  return realpathSync(tempFolder());
}

describe("a private folder", () => {
  it("is made, with the folders above it, for this user only", () => {
    const parent = home();
    const path = join(parent, ".cache", "latchkey");
    expect(claimPrivateFolder(path)).toBe(path);
    for (const made of [join(parent, ".cache"), path]) expect(statSync(made).mode & 0o777).toBe(0o700);
    expect(claimPrivateFolder(path)).toBe(path);
  });

  it("may be reached through a link that only this user or root can change", () => {
    const parent = home();
    symlinkSync(home(), join(parent, "link"));
    expect(claimPrivateFolder(join(parent, "link", "own"))).toBe(join(realpathSync(join(parent, "link")), "own"));
  });

  it("may be in a sticky folder, where users can write but not remove each other's files", () => {
    const parent = home();
    chmodSync(parent, 0o1777);
    expect(claimPrivateFolder(join(parent, "own"))).toBe(join(parent, "own"));
  });

  it.each<[string, (path: string) => void]>([
    ["a file", (path) => writeFileSync(path, "")],
    ["a link to a folder", (path) => symlinkSync(home(), path)],
    ["a link to nothing", (path) => symlinkSync(join(home(), "nothing"), path)],
    ["writable by its group", (path) => makeWithMode(path, 0o770)],
    ["writable by all", (path) => makeWithMode(path, 0o1777)],
    ["readable by all", (path) => makeWithMode(path, 0o755)],
  ])("is none that is %s", (_, prepare) => {
    const path = join(home(), "latchkey");
    prepare(path);
    expect(claimPrivateFolder(path)).toBeUndefined();
  });

  it.each([
    ["its group", 0o770],
    ["all", 0o777],
  ])("is none in a folder whose content %s can replace, and nothing is made there", (_, mode) => {
    const open = join(home(), "open");
    makeWithMode(open, mode);
    expect(claimPrivateFolder(join(open, "latchkey"))).toBeUndefined();
    expect(claimPrivateFolder(join(open, "between", "latchkey"))).toBeUndefined();
    expect(readdirSync(open)).toEqual([]);
  });

  it.runIf(isRoot)("is none of another user, nor in one of another user", () => {
    const path = join(home(), "latchkey");
    makeWithMode(path, 0o700, anotherUser);
    expect(claimPrivateFolder(path)).toBeUndefined();
    expect(claimPrivateFolder(join(path, "inside"))).toBeUndefined();
    expect(readdirSync(path)).toEqual([]);
  });

  it.each([
    ["relative", "latchkey"],
    ["below a file", join(root, "package.json", "latchkey")],
    ["where nothing can be made", "/proc/latchkey/cache"],
  ])("is none that is %s", (_, path) => {
    expect(claimPrivateFolder(path)).toBeUndefined();
  });
});

describe("compiled code", () => {
  /** Whether the planted code was run. */
  async function runs({ marker }: Planted, environment: Record<string, string>): Promise<boolean> {
    writeFileSync(marker, "");
    const { code, stdout } = await runLatchkey(["--version"], { TMPDIR: home(), ...environment }, sourceProgram);
    const wasRun = readFileSync(marker, "utf8") === "planted";
    expect({ code, stdout }).toEqual({ code: 0, stdout: wasRun ? "" : expect.stringMatching(/^\d+\.\d+\.\d+\n$/) });
    return wasRun;
  }

  it("is kept where only this user can write, and run from there", async () => {
    const [planted, folder] = [await plantCode(), home()];
    expect(await runs(planted, { XDG_CACHE_HOME: folder })).toBe(false);
    const cache = join(folder, "latchkey");
    expect(lstatSync(cache).mode & 0o777).toBe(0o700);
    expect(readdirSync(cache)).not.toEqual([]);

    // Control: planted code is run from a folder that is trusted.
    cpSync(planted.cache, cache, { recursive: true });
    expect(await runs(planted, { XDG_CACHE_HOME: folder })).toBe(true);
    expect(await runs(planted, { NODE_COMPILE_CACHE: planted.cache })).toBe(true);
  });

  it("that another user planted in the temporary folder is not run, and nothing is left there", async () => {
    const [planted, shared, HOME] = [await plantCode(), home(), home()];
    chmodSync(shared, 0o1777);
    cpSync(planted.cache, join(shared, "node-compile-cache"), { recursive: true });
    expect(await runs(planted, { TMPDIR: shared, HOME })).toBe(false);
    expect(readdirSync(shared)).toEqual(["node-compile-cache"]);
    expect(existsSync(join(HOME, ".cache", "latchkey"))).toBe(true);
  });

  it.runIf(isRoot)("in a folder of another user is not run, and nothing is put there", async () => {
    const [planted, folder] = [await plantCode(), home()];
    const cache = join(folder, "latchkey");
    cpSync(planted.cache, cache, { recursive: true });
    chmodSync(cache, 0o700);
    chownSync(cache, anotherUser, anotherUser);
    const before = readdirSync(cache, { recursive: true });
    expect(await runs(planted, { XDG_CACHE_HOME: folder })).toBe(false);
    expect(readdirSync(cache, { recursive: true })).toEqual(before);
  });

  it("is kept of threads and workers too, and the service runs from it", async () => {
    const folder = home();
    const environment = { XDG_CACHE_HOME: folder, LATCHKEY_WORKERS: "2", LATCHKEY_DRAIN_MS: "0" };
    const latchkey = await startLatchkey({ ...environment, LATCHKEY_DATA_DIR: tempFolder() });
    latchkey.kill("SIGTERM");
    expect(await latchkey.exited).toBe(0);
    const kept = filesBelow(join(folder, "latchkey")).map((file) => readFileSync(file));
    for (const script of ["worker-process.js", "writer-worker.js"]) {
      const source = readFileSync(join(dirname(builtProgram()), script));
      expect(
        kept.filter((entry) => isEntryOf(entry, source)),
        script,
      ).toHaveLength(1);
    }
  });

  it("is not kept where there is no home, and the service runs all the same", async () => {
    const planted = { marker: join(home(), "marker") };
    expect(await runs(planted, { HOME: "", XDG_CACHE_HOME: "not/absolute" })).toBe(false);
  });
});

interface Planted {
  /** The file that the planted code writes to. */
  readonly marker: string;
}

function makeWithMode(path: string, mode: number, owner?: number): void {
  mkdirSync(path);
  chmodSync(path, mode);
  if (owner !== undefined) chownSync(path, owner, owner);
}

/**
 * Creates a cache as another user could. Node stores stripped code under a checksum of the source, which is not
 * secret: a header of five numbers, then the code.
 */
async function plantCode(): Promise<Planted & { readonly cache: string }> {
  const cache = join(home(), "latchkey");
  const marker = join(home(), "marker");
  await runLatchkey(["--version"], { NODE_COMPILE_CACHE: cache }, sourceProgram);

  const source = readFileSync(join(root, "src/cli/main.ts"));
  const code = Buffer.from(
    `import fs from "node:fs"; export function main() { fs.writeFileSync(${JSON.stringify(marker)}, "planted"); }`,
  );
  const files = filesBelow(cache).filter((file) => isEntryOf(readFileSync(file), source));
  expect(files).toHaveLength(1);
  for (const file of files) {
    const header = readFileSync(file).subarray(0, 20);
    header.writeUInt32LE(code.length, 8);
    header.writeUInt32LE(crc32(code), 16);
    writeFileSync(file, Buffer.concat([header, code]));
  }
  return { cache, marker };
}

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

function isEntryOf(entry: Buffer, source: Buffer): boolean {
  return entry.readUInt32LE(4) === source.length && entry.readUInt32LE(12) === crc32(source);
}
