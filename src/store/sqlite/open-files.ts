import { type FileHandle, open, stat } from "node:fs/promises";

interface OpenFile {
  readonly path: string;
  readonly handle: FileHandle;
}

/** Compares the files that this process has open with the files at their paths now. */
export class OpenFiles {
  readonly #files: readonly OpenFile[];
  #firstBytes = 0;

  /** Paths without a file are skipped. */
  static async open(paths: readonly string[]): Promise<OpenFiles> {
    const opened = await Promise.all(
      paths.map(async (path) => {
        try {
          return [{ path, handle: await open(path, "r") }];
        } catch {
          return [];
        }
      }),
    );
    return new OpenFiles(opened.flat());
  }

  private constructor(files: readonly OpenFile[]) {
    this.#files = files;
  }

  /** What is wrong, in words; undefined when every path still names the open file. */
  async findDifference(): Promise<string | undefined> {
    const differences = await Promise.all(this.#files.map(({ path, handle }) => differenceOf(path, handle)));
    return differences.find((difference) => difference !== undefined);
  }

  /** What is wrong, in words, if the first file has become shorter since the last call. The embedded store never shortens it. */
  async findLoss(): Promise<string | undefined> {
    const [first] = this.#files;
    if (first === undefined) return undefined;
    const before = this.#firstBytes;
    // What cannot be found out is no loss: `findDifference` says so.
    const { size } = await first.handle.stat().catch(() => ({ size: before }));
    this.#firstBytes = size;
    return size < before ? `${first.path} became shorter: it had ${before} bytes, and has ${size}` : undefined;
  }

  /**
   * Must be called after SQLite has closed the files: when a process closes any handle of a file, the system drops all
   * its locks on that file.
   */
  async close(): Promise<void> {
    await Promise.all(this.#files.map(({ handle }) => handle.close()));
  }
}

async function differenceOf(path: string, handle: FileHandle): Promise<string | undefined> {
  try {
    // Read from the handle each time: on some file systems the inode number of an open file changes.
    const [named, opened] = await Promise.all([stat(path, { bigint: true }), handle.stat({ bigint: true })]);
    return named.ino === opened.ino && named.dev === opened.dev ? undefined : `${path} was replaced`;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === "ENOENT" || code === "ENOTDIR" ? `${path} is gone` : `${path} cannot be found: ${code}`;
  }
}
