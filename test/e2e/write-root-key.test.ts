import { chmodSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { Secret } from "../../src/domain/secret.ts";
import { writeRootKey } from "../../src/server/write-root-key.ts";
import { tempFolder } from "../support/temp-folder.ts";

const [one, two] = [new Secret("root-key-of-one"), new Secret("root-key-of-two")];

/** The files of the folder, with their content. */
function filesIn(folder: string): Record<string, string> {
  return Object.fromEntries(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), "utf8").trim()]));
}

describe("two processes that hand over a root key in one folder", () => {
  it.each([
    ["the first", 0, "keep first"],
    ["the second", 1, "keep first"],
    ["the first", 0, "take back first"],
    ["the second", 1, "take back first"],
  ])("leave the one of %s when that counts (%#, %s)", (_, winner, order) => {
    const folder = tempFolder();
    const file = join(folder, "root-key");
    const handedOver = [writeRootKey(file, one), writeRootKey(file, two)] as const;
    // It is not known yet which one becomes valid. A crash now loses neither.
    expect(Object.values(filesIn(folder)).sort()).toEqual([one.reveal(), two.reveal()]);

    const steps = [() => handedOver[winner === 0 ? 0 : 1].commit(), () => handedOver[winner === 0 ? 1 : 0].rollback()];
    if (order === "take back first") steps.reverse();
    for (const step of steps) step();

    expect(filesIn(folder)).toEqual({ "root-key": (winner === 0 ? one : two).reveal() });
  });
});

describe("a root key that is handed over", () => {
  it("replaces one that was left behind, and is readable by its owner only", () => {
    const folder = tempFolder();
    const file = join(folder, "root-key");
    writeFileSync(file, "left behind");
    chmodSync(file, 0o644);
    const handedOver = writeRootKey(file, one);
    expect(readFileSync(file, "utf8")).toBe("left behind");

    handedOver.commit();
    expect(filesIn(folder)).toEqual({ "root-key": one.reveal() });
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });
});
