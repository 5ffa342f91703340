import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { builtProgram } from "../support/artefact.ts";
import { inFile } from "../support/copies.ts";
import { runLatchkey } from "../support/latchkey-process.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { runOnTerminal } from "../support/terminal.ts";
import { createEmptyDatabase, hasPostgres } from "../support/test-database.ts";

const defineLatchkey = `latchkey() { '${process.execPath}' '${builtProgram()}' "$@"; }`;

/** Runs the program's commands one after the other on a terminal, on one data folder. */
function onTerminal(lines: readonly string[], folder: string, environment: Record<string, string> = {}) {
  const typed = [`set -e; ${defineLatchkey}`, ...lines.map((line) => `latchkey ${line}`)].join("\n");
  const all = { HOME: folder, LATCHKEY_DATA_DIR: join(folder, "data"), ...environment };
  return runOnTerminal(typed, { environment: all, folder });
}

describe("commands that call no service", () => {
  it("work on a terminal as they do in a pipe", async () => {
    const lines = ["migrate up", "migrate status", "backup copy.db", "profile list", "completion bash", "--version"];
    const { code, shown } = await onTerminal(lines, tempFolder());
    expect(code, shown).toBe(0);
    for (const text of [/^applied 0/m, /^has {4}0/m, /^backed up to copy\.db$/m, /^NAME {2}URL$/m, /^complete -o/m])
      expect(shown).toMatch(text);
  });

  it.runIf(hasPostgres)("have a bar for each table that is copied", async () => {
    const folder = tempFolder();
    expect(await onTerminal(["migrate up"], folder)).toMatchObject({ code: 0 });
    inFile(join(folder, "data"), (db) =>
      db.exec(
        `INSERT INTO events (id, at_ms, method, actor, target_id, fields) VALUES ('evt_1', 1, 'm', 'r', 't', '')`,
      ),
    );
    const { code, shown } = await onTerminal(["copy"], folder, { LATCHKEY_COPY_TO: await createEmptyDatabase() });
    expect(code, shown).toBe(0);
    expect(shown).toMatch(/^\S*events {11}█{30} 100% {2}1 of 1$/m);
    expect(shown).toContain("The copy is finished.");
  });

  it.each(["serve", "backup", "restore", "copy", "migrate", "doctor"])("have a help of their own: %s", async (name) => {
    const { code, stdout, stderr } = await runLatchkey([name, "--help"]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(RegExp(`^Usage: latchkey ${name}`));
    expect(stdout).not.toContain("latchkey keys");
    expect(await runLatchkey(["help", name])).toEqual({ code, stdout, stderr });
  });

  it("are listed where none is named: a service is served only by serve", async () => {
    const help = await runLatchkey(["--help"]);
    expect(help).toMatchObject({ code: 0, stdout: expect.stringMatching(/^Usage: latchkey serve /), stderr: "" });
    expect(await runLatchkey([])).toEqual(help);
    const { code, stdout, stderr } = await runLatchkey(["--role", "edge"]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toMatch(/^--role is for serve and doctor: it follows the command\n/);
  });

  it.each([
    ["--url http://127.0.0.1:8090 keys list", "--url", "keys"],
    ["--api-id=demo keys list", "--api-id", "keys"],
    ["--url http://127.0.0.1:8090 profile list", "--url", "profile"],
  ])("say where a flag of a command that calls a service goes: %s", async (line, flag, name) => {
    const { code, stdout, stderr } = await runLatchkey(line.split(" "));
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    const problem = `${flag} goes behind the command: latchkey ${name} COMMAND ${flag} …`;
    expect(stderr).toBe(`${problem}\nlatchkey --help tells how it is used\n`);
  });

  it("say where settings come from to whoever gives them as flags, in two lines", async () => {
    for (const [args, command] of [
      ["serve --port 99", "latchkey serve"] as const,
      ["--port=99", "latchkey"] as const,
    ]) {
      const { code, stdout, stderr } = await runLatchkey(args.split(" "));
      expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
      const lines = stderr.split("\n");
      expect(lines[0]).toContain("there is no flag --port here");
      expect(lines[0]).toContain("settings come from the environment, such as PORT=8080: docs/configuration.md");
      expect(lines.slice(1)).toEqual([`${command} --help tells how it is used`, ""]);
    }
  });
});
