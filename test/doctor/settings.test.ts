import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { freePort } from "../support/local-server.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { testRootKey } from "../support/test-root-key.ts";
import { expectFound, healthyEnvironment, type PlantedFault, password, runDoctor } from "./run-doctor.ts";

/** A file of settings that everybody can read. */
function settingsFile(text: string): Record<string, string> {
  const file = join(tempFolder(), "settings");
  writeFileSync(file, text);
  chmodSync(file, 0o644);
  return { LATCHKEY_SETTINGS_FILE: file };
}

const faults: readonly PlantedFault[] = [
  {
    fault: "a setting that is wrong",
    plant: () => ({ LATCHKEY_CALLS_MAX: "many" }),
    ...{ id: "settings-invalid", fix: "Set LATCHKEY_CALLS_MAX", code: 1 },
  },
  {
    fault: "one port for both listeners",
    async plant() {
      const port = String(await freePort());
      return { PORT: port, LATCHKEY_INTERNAL_PORT: port };
    },
    ...{ id: "settings-invalid", fix: "Set PORT", code: 1 },
  },
  {
    fault: "a port in the host",
    plant: () => ({ HOST: "localhost:8080" }),
    ...{ id: "settings-invalid", fix: "Set HOST", code: 1 },
  },
  {
    fault: "a setting that is misspelt",
    plant: () => ({ LATCHKEY_CALL_MAX: "100" }),
    ...{ id: "settings-unknown", fix: "unset LATCHKEY_CALL_MAX", code: 3 },
  },
  ...["LATCHKEY_ROOT_KEY", "LATCHKEY_INTERNAL_SECRET"].map(
    (name): PlantedFault => ({
      fault: `a file of settings with ${name} that everybody can read`,
      plant: () => settingsFile(`LATCHKEY_CALLS_MAX=500\n${name}="${testRootKey}"\n`),
      ...{ id: "file-open-to-others", fix: /^chmod 600 \/\S+\/settings$/, code: 3 },
    }),
  ),
];

describe.concurrent("latchkey doctor, of settings", () => {
  it.each(faults)("finds $fault, names the fix, and finds nothing else", expectFound);

  it("finds nothing in a file of settings that everybody can read and that has no secret", async () => {
    const secret = join(tempFolder(), "root-key");
    writeFileSync(secret, testRootKey, { mode: 0o600 });
    const text = `LATCHKEY_CALLS_MAX=500\nLATCHKEY_ROOT_KEY_FILE=${secret}\nLATCHKEY_INTERNAL_SECRET=\n`;
    expect(await runDoctor({ ...healthyEnvironment(), ...settingsFile(text) })).toMatchObject({ ids: [], code: 0 });
  });

  it("finds a file of settings with secrets also if a line of it is wrong", async () => {
    const text = `LATCHKEY_CALL_MAX=500\nLATCHKEY_ROOT_KEY=${testRootKey}\n`;
    const answer = await runDoctor({ ...healthyEnvironment(), ...settingsFile(text) });
    expect(answer).toMatchObject({ ids: ["settings-invalid", "file-open-to-others"], code: 1 });
  });

  it("finds a misspelt setting also if another setting, or the file of settings, is wrong", async () => {
    const misspelt = { ...healthyEnvironment(), LATCHKEY_VERIFYAUTH: "required" };
    const wrong = [{ PORT: "x" }, settingsFile("PORT 80"), { LATCHKEY_SETTINGS_FILE: "/nowhere/settings" }];
    const answers = await Promise.all(wrong.map((each) => runDoctor({ ...misspelt, ...each })));
    for (const answer of answers) {
      expect(answer).toMatchObject({ ids: ["settings-invalid", "settings-unknown"], code: 1 });
      expect(answer.findings[1]?.problem).toBe(
        "LATCHKEY_VERIFYAUTH is not a setting of Latchkey; did you mean LATCHKEY_VERIFY_AUTH?",
      );
    }
  });

  it.each(["DATABASE_URL", "LATCHKEY_COPY_TO", "REDIS_URL"])(
    "shows nothing of a password in %s that is not percent-encoded",
    async (name) => {
      const scheme = name === "REDIS_URL" ? "redis" : "postgres";
      const answer = await runDoctor({
        ...healthyEnvironment(),
        [name]: `${scheme}://latchkey:a@${password}/${password}#a@127.0.0.1:1/1`,
      });
      expect(answer).toMatchObject({ ids: ["settings-invalid"], code: 1 });
      expect(answer.findings[0]?.problem).toMatch(/ must have special characters .* percent-encoded: @ is %40, /);
    },
  );
});
