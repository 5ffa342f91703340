import { describe, expect, it } from "vitest";
import { readSettings } from "../../src/config/settings.ts";
import { longEnough, noFiles, problemsOf } from "./problems-of.ts";

describe("a secret from a file", () => {
  const fromFile = { LATCHKEY_ROOT_KEY_FILE: "/run/secrets/root" };

  it("is read without the line break at its end", () => {
    const { settings, warnings } = readSettings(fromFile, () => `${longEnough}\n`);

    expect(settings.rootKeys.map((key) => key.reveal())).toEqual([longEnough]);
    expect(warnings).toEqual([]);
  });

  it.each([
    ["is missing", {}, undefined, /_FILE: ENOENT$/],
    ["is empty", {}, "\n", /_FILE: the file is empty$/],
    ["holds a short key", {}, "s3cr3t", /must be at least 32 characters/],
    ["competes with the variable", { LATCHKEY_ROOT_KEY: longEnough }, longEnough, /are both set/],
  ])("that %s is refused", (_, others, content, message) => {
    const problems = problemsOf({ ...fromFile, ...others }, content === undefined ? noFiles : () => content);

    expect(problems).toEqual([expect.stringMatching(message)]);
    expect(problems.join()).not.toContain("s3cr3t");
  });
});
