import { describe, expect, it } from "vitest";
import { parseSettingsFile } from "../../src/config/settings-file.ts";

const isKnown = (name: string) => ["PORT", "LATCHKEY_ROOT_KEY"].includes(name);
const suggest = (name: string) => `; see ${name}`;

describe("a file of settings", () => {
  it("has names and values, remarks and empty lines", () => {
    const text = '# of this replica\r\n\r\n PORT = 8081 \nLATCHKEY_ROOT_KEY="a = b # c"\n';
    expect(parseSettingsFile(text, isKnown, suggest)).toEqual({
      values: { PORT: "8081", LATCHKEY_ROOT_KEY: "a = b # c" },
      problems: [],
    });
  });

  it.each([
    ["PORT", "must be NAME=value"],
    ["PORT=1\nPORT=2", "has PORT a second time"],
    ["LATCHKEY_ROOTKEY=x", "has LATCHKEY_ROOTKEY, which is not a setting of Latchkey; see LATCHKEY_ROOTKEY"],
    // A root key that was wrapped onto a line of its own.
    ["c2VjcmV0c2VjcmV0c2VjcmV0=", "has a name, which is not a setting of Latchkey"],
  ])("with %j is refused by its line, and none of it is repeated that may be a secret", (text, problem) => {
    const line = text.split("\n").length;
    expect(parseSettingsFile(text, isKnown, suggest).problems).toEqual([
      `LATCHKEY_SETTINGS_FILE, line ${line}, ${problem}`,
    ]);
  });
});
