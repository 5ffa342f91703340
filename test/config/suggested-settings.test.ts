import { describe, expect, it } from "vitest";
import { readSettings } from "../../src/config/settings.ts";

describe("a LATCHKEY_ name that is no setting", () => {
  it.each([
    ["LATCHKEY_PORT", "PORT"],
    ["LATCHKEY_HOST", "HOST"],
    ["LATCHKEY_DATABASE_URL", "DATABASE_URL"],
    ["LATCHKEY_REDIS_URL", "REDIS_URL"],
    ["LATCHKEY_DATABASE_URL_FILE", "DATABASE_URL_FILE"],
    ["LATCHKEY_ROOT_KEYS", "LATCHKEY_ROOT_KEY"],
    ["LATCHKEY_CALL_MAX", "LATCHKEY_CALLS_MAX"],
    ["LATCHKEY_LOGLEVEL", "LATCHKEY_LOG_LEVEL"],
  ])("%s was probably meant for %s", (name, meant) => {
    const { warnings } = readSettings({ [name]: "x" }, () => "");
    expect(warnings).toEqual([`${name} is not a setting of Latchkey; did you mean ${meant}?`]);
    const readFile = () => `${name}=x`;
    expect(() => readSettings({ LATCHKEY_SETTINGS_FILE: "file" }, readFile)).toThrow(`did you mean ${meant}?`);
  });

  it.each(["LATCHKEY_SURPRISE", "LATCHKEY_PORT_8080_TCP", "LATCHKEY_SERVICE_HOST", "LATCHKEY_X"])(
    "%s resembles none, and none is named",
    (name) => {
      const { warnings } = readSettings({ [name]: "x" }, () => "");
      expect(warnings).toEqual([`${name} is not a setting of Latchkey`]);
    },
  );
});
