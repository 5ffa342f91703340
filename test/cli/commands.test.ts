import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify, stripVTControlCharacters } from "node:util";
import { describe, expect, it } from "vitest";
import { exampleLine } from "../../src/cli/commands/example-line.ts";
import { type CliCommand, type CommandGroup, groups } from "../../src/cli/commands/groups.ts";
import { commandHelp, groupHelp } from "../../src/cli/commands/help.ts";
import { widthOf } from "../../src/cli/commands/screen.ts";
import { EXAMPLES, type Example } from "../../tools/protoc-gen-latchkey/examples.ts";
import { builtProgram } from "../support/artefact.ts";
import { isDeep } from "../support/deep.ts";
import { startLatchkey } from "../support/latchkey-process.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { runOnTerminal } from "../support/terminal.ts";
import { testRootKey } from "../support/test-root-key.ts";

/** What a terminal shows of each example. A method that is not here has no test, and fails. */
const shownOf: Readonly<Record<string, readonly (string | RegExp)[]>> = {
  "/v1/apis.createApi": [/^api-id +api_weather/m, /^defaults.ratelimit.duration +1m$/m],
  "/v1/apis.getApi": [/^name +Weather$/m],
  "/v1/apis.listApis": [/^API-ID +NAME +CREATED-AT/m, "Weather"],
  "/v1/apis.updateApi": [/^name +Weather and tides$/m, /^version +2$/m],
  "/v1/owners.createOwner": [/^refill.interval +monthly$/m, "ratelimits\nNAME", /^minute +true +600 +1m$/m],
  "/v1/owners.getOwner": [/^meta +\{"plan":"team"\}$/m],
  "/v1/owners.listOwners": [/^OWNER-ID +ENABLED/m, "No room for"],
  "/v1/owners.updateOwner": [/^meta +\{"plan":"business"\}$/m],
  "/v1/owners.updateRemaining": [/^remaining +60000$/m],
  "/v1/keys.createKey": [/^key +live_\w+$/m, "This is the only copy of the key"],
  "/v1/keys.verifyKey": [/^valid +true$/m, /^code +VALID$/m, /^owner.remaining +59999$/m],
  "/v1/keys.explainKey": [/^code +INSUFFICIENT_PERMISSIONS$/m, "checks\nNAME", /^permissions +false/m],
  "/v1/keys.getKey": [/^permissions +docs.read$/m, "secrets\nSTART"],
  "/v1/keys.listKeys": [/^KEY-ID +START/m, "Ada's laptop", "No room for"],
  "/v1/keys.updateKey": [/^name +Ada's desktop$/m],
  "/v1/usage.getSpending": [/^results$/m, /^user_42 +1 /m],
  "/v1/audit.listEvents": [/^ID +AT +METHOD/m, "keys.updateKey"],
  "/v1/keys.updateRemaining": [/^remaining +500$/m],
  "/v1/keys.rerollKey": ["This is the only copy of the key"],
  "/v1/keys.importKeys": [/^1 +key_\w+$/m, "1 of 1 keys were imported"],
  "/v1/ratelimits.limit": [/^success +true$/m],
  "/v1/rootKeys.createRootKey": [/^root-key +lk_root_\w+$/m, "This is the only copy of the root-key"],
  "/v1/rootKeys.listRootKeys": [/^ROOT-KEY-ID +START/m, "Dashboard"],
  "/v1/rootKeys.updateRootKey": [/^permissions +keys.read$/m],
  "/v1/rootKeys.revokeRootKey": [/Revoke root_\w+ \(root-keys\) for ever\? \[y\/N\] y/, /^revoked root_\w+$/m],
  "/v1/keys.deleteKey": [/^deleted key_\w+$/m],
  "/v1/owners.deleteOwner": [/^deleted user_42/m],
  "/v1/apis.deleteApi": [/^deleted api_weather/m],
};

/** `npm test` runs each command once, these on a terminal; `npm run test:deep` runs all in both ways. */
const shownInTests = new Set([
  "/v1/apis.createApi",
  "/v1/apis.listApis",
  "/v1/owners.listOwners",
  "/v1/keys.createKey",
  "/v1/keys.explainKey",
  "/v1/keys.listKeys",
  "/v1/keys.importKeys",
  "/v1/rootKeys.revokeRootKey",
  "/v1/keys.deleteKey",
]);

async function startService(): Promise<Record<string, string>> {
  const { baseUrl } = await startLatchkey({ LATCHKEY_DATA_DIR: tempFolder(), LATCHKEY_ROOT_KEY: testRootKey });
  return { LATCHKEY_URL: baseUrl, LATCHKEY_ROOT_KEY: testRootKey, HOME: process.env.HOME ?? "/" };
}

const defineLatchkey = `latchkey() { '${process.execPath}' '${builtProgram()}' "$@"; }`;

function commandOf(path: string): { group: CommandGroup; command: CliCommand } {
  const [, client, method] = /^\/v1\/(\w+)\.(\w+)$/.exec(path) ?? [];
  const group = groups.find((each) => each.client === client);
  const command = group?.commands.find((each) => each.method === method);
  return group && command ? { group, command } : expect.fail(`${path} has no command`);
}

/** Runs the line of an example, and answers what it prints. */
type Tell = (line: string, path: string, folder: string, example: Example) => Promise<string>;

function inPipe(environment: Record<string, string>): Tell {
  const env = { PATH: process.env.PATH, ...environment };
  return async (line, path, cwd, { response }) => {
    const script = `${defineLatchkey}\n${line} --json </dev/null`;
    const { stdout, stderr } = await promisify(execFile)("bash", ["-ec", script], { cwd, env });
    expect(withoutChance(JSON.parse(stdout)), path).toEqual(withoutChance(response));
    expect(stdout.split("\n"), path).toHaveLength(2);
    expect(stderr, path).toBe("");
    return stdout;
  };
}

function onTerminal(environment: Record<string, string>): Tell {
  const columns = 80;
  return async (line, path, folder) => {
    const typed = line.replace(/ --yes$/, "");
    const replies = [{ when: /\[y\/N\] /, type: "y\r" }];
    const options = { environment, folder, columns, replies };
    const { code, shown } = await runOnTerminal(`${defineLatchkey}\n${typed}`, options);
    const plain = stripVTControlCharacters(shown);
    expect(code, `${path}: ${plain}`).toBe(0);
    for (const text of shownOf[path] ?? []) expect(plain, path).toMatch(text);
    const rows = plain.split("\n").filter((row) => / {2}/.test(row));
    // Of single values, none is cut: they may be long.
    if (/^[A-Z-]+ {2}/.test(plain)) for (const row of rows) expect(widthOf(row), row).toBeLessThanOrEqual(columns);
    return plain;
  };
}

/** Tells the story of the examples by the lines that the help prints, with the ids and secrets that the service gives out. */
async function tellStory(tell: Tell): Promise<void> {
  const folder = tempFolder();
  const actual = new Map<string, string>();
  const replace = (text: string) => [...actual].reduce((told, [from, to]) => told.replaceAll(from, to), text);
  for (const [path, example] of Object.entries(EXAMPLES)) {
    const { group, command } = commandOf(path);
    const { key } = example.request;
    if (typeof key === "string") writeFileSync(join(folder, "key.txt"), `${replace(key)}\n`);
    const batch = (example.request[command.batch?.field ?? ""] ?? []) as object[];
    const jsonLines = batch.map((each) => `${replace(JSON.stringify(each))}\n`);
    if (command.batch) writeFileSync(join(folder, `${command.batch.field}.jsonl`), jsonLines.join(""));
    const output = await tell(replace(exampleLine(group, command)), path, folder, example);
    for (const [name, value] of Object.entries(example.response as Example["request"])) {
      if (!/^(keyId|key|rootKeyId|rootKey)$/.test(name) || actual.has(String(value))) continue;
      const flag = name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
      const [, told = ""] = new RegExp(`^(?:\\{.*"${name}":"|${flag} +)(\\w+)`, "m").exec(output) ?? [];
      actual.set(String(value), told);
    }
  }
}

/** The same value without ids, secrets and times, which differ each time. */
function withoutChance(value: unknown): unknown {
  const text = JSON.stringify(value, (_, each) => (typeof each === "number" && each > 1e12 ? "a time" : each));
  return JSON.parse(text.replaceAll(/"((key|req|evt|root|live|lk_root)_)\w+"/g, '"$1"'));
}

describe.concurrent("the commands", () => {
  it("of all methods are tested here, with an example that their help prints", () => {
    const methods = groups.flatMap(({ client, commands }) => commands.map(({ method }) => `/v1/${client}.${method}`));
    expect(Object.keys(shownOf).toSorted()).toEqual([...new Set(methods)].toSorted());
    for (const group of groups) {
      for (const command of group.commands) {
        expect(groupHelp(group)).toContain(`latchkey ${group.name} ${command.name} `);
        expect(commandHelp(group, command)).toContain(`\nExample:\n  ${exampleLine(group, command)}\n`);
      }
    }
  });

  if (isDeep) {
    it("answer in a pipe what the service answers, as JSON", async () => {
      await tellStory(inPipe(await startService()));
    });

    it("print tables on a terminal that fit into it, and ask before they delete", async () => {
      await tellStory(onTerminal(await startService()));
    });
  } else {
    it("answer in a pipe what the service answers, as JSON, and print tables on a terminal, and ask before they delete", async () => {
      const environment = await startService();
      const [pipe, terminal] = [inPipe(environment), onTerminal(environment)];
      await tellStory((line, path, ...more) => (shownInTests.has(path) ? terminal : pipe)(line, path, ...more));
    });
  }
});
