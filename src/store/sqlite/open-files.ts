import { type FileHandle, open, stat } from "node:fs/promises";

interface OpenFile {
  readonly path: string;
  readonly handle: FileHandle;
}

/** Compares files that this process has open with the files that their paths name now. */
export class OpenFiles {
  readonly #files: readonly OpenFile[];

  /** Paths without a file are left out. */
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

  /**
   * To be called after SQLite has closed the files: the system drops all locks of a process on a file when the process
   * closes any of its handles of that file.
   */
  async close(): Promise<void> {
    await Promise.all(this.#files.map(({ handle }) => handle.close()));
  }
}

async function differenceOf(path: string, handle: FileHandle): Promise<string | undefined> {
  try {
    // The handle is asked each time: on some file systems the number of a file changes while it is open.
    const [named, opened] = await Promise.all([stat(path, { bigint: true }), handle.stat({ bigint: true })]);
    return named.ino === opened.ino && named.dev === opened.dev ? undefined : `${path} was replaced`;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === "ENOENT" || code === "ENOTDIR" ? `${path} is gone` : `${path} cannot be found: ${code}`;
  }
}
