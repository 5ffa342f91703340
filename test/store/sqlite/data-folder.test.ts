import { spawn } from "node:child_process";
import { once } from "node:events";
import { statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { claimDataFolder, DataFolderError } from "../../../src/store/sqlite/data-folder.ts";
import { tempFolder } from "../../support/temp-folder.ts";

const moduleUrl = new URL("../../../src/store/sqlite/data-folder.ts", import.meta.url).href;

/** Another process that claims the folder, says how that went and then lives until it is killed. */
async function claimElsewhere(path: string) {
  const script = `
    const { claimDataFolder } = await import(${JSON.stringify(moduleUrl)});
    try { claimDataFolder(${JSON.stringify(path)}); console.log("claimed"); } catch (error) { console.log(error.message); }
    setInterval(() => {}, 1000);`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", script], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const [said] = (await once(child.stdout, "data")) as [Buffer];
  return {
    said: said.toString().trim(),
    async kill() {
      child.kill("SIGKILL");
      await once(child, "exit");
    },
  };
}

describe("a data folder", () => {
  it("is made with all folders above it, open to its owner only", () => {
    const path = join(tempFolder(), "a", "b");
    const folder = claimDataFolder(path);
    onTestFinished(() => folder.release());
    expect(statSync(path).mode & 0o777).toBe(0o700);
    expect(folder.databaseFile).toBe(join(path, "latchkey.db"));
  });

  it("that is claimed is refused to a second claim until it is released", () => {
    const path = tempFolder();
    const folder = claimDataFolder(path);
    const refusal = new DataFolderError(`the data folder ${path} is in use by another process`);
    expect(() => claimDataFolder(path)).toThrow(refusal);
    expect(() => claimDataFolder(path), "a refused claim frees nothing").toThrow(refusal);
    folder.release();
    claimDataFolder(path).release();
  });

  it("is refused to another process as long as it is claimed here", async () => {
    const path = tempFolder();
    const folder = claimDataFolder(path);
    expect((await claimElsewhere(path)).said).toBe(`the data folder ${path} is in use by another process`);
    folder.release();
    expect((await claimElsewhere(path)).said).toBe("claimed");
  });

  it("is free again as soon as the process that claimed it is killed", async () => {
    const path = tempFolder();
    const other = await claimElsewhere(path);
    expect(other.said).toBe("claimed");
    expect(() => claimDataFolder(path)).toThrow(DataFolderError);
    await other.kill();
    claimDataFolder(path).release();
  });

  it("that cannot be made is refused in words", () => {
    const file = join(tempFolder(), "file");
    writeFileSync(file, "");
    expect(() => claimDataFolder(join(file, "data"))).toThrow(
      new DataFolderError(`the data folder ${join(file, "data")} cannot be made: ENOTDIR`),
    );
    expect(() => claimDataFolder(file)).toThrow(
      new DataFolderError(`the data folder ${file} cannot be made: it is a file`),
    );
  });

  it("whose lock file is something else is refused in words", () => {
    const path = tempFolder();
    writeFileSync(join(path, "latchkey.lock"), "something else, ".repeat(1000));
    expect(() => claimDataFolder(path)).toThrow(/^the data folder .* cannot be written to: file is not a database$/);
  });
});
