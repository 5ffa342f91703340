import { describe, expect, it } from "vitest";
import { buildRequest } from "../../src/cli/commands/build-request.ts";
import { readConnection } from "../../src/cli/commands/connection.ts";
import { commonFlagsOf, flagsOf } from "../../src/cli/commands/flags.ts";
import { groups } from "../../src/cli/commands/groups.ts";
import { parseCommandLine } from "../../src/cli/commands/parse-command-line.ts";
import type { Input } from "../../src/cli/commands/read-input.ts";

/** Files that flags can name. */
const files: Readonly<Record<string, string>> = {
  "@meta.json": '{"plan":"team"}',
  "@key.txt": "live_secret\n",
  "@key.json": '{"key":"live_secret"}',
  "@empty": "\n",
  "@request.json": '{"apiId":"a","remaining":5,"refill":{"interval":"daily","amount":1},"permissions":["x","y"]}',
  "@list.json": '[{"digest":"1"},{"digest":"2"}]',
  "@lines.jsonl": '{"digest":"1"}\n\n{"digest":"2"}\n',
  "@one.jsonl": '{"digest":"1"}\n',
  "@bad.jsonl": '{"digest":"1"}\n\nlive_secret\n',
  "@number.jsonl": '{"digest":"1"}\n2\n',
};

const input: Input = {
  read: async (_, source) => files[source] ?? expect.fail(`no file ${source}`),
  readSecret: () => expect.fail("nobody is asked"),
  confirm: () => expect.fail("nobody is asked"),
};

function commandNamed(words: string) {
  const [groupName, name] = words.split(" ");
  const group = groups.find((each) => each.name === groupName);
  return group?.commands.find((each) => each.name === name) ?? expect.fail(`no command ${words}`);
}

/** The request that a command makes of its arguments. */
async function requestOf(words: string, args: readonly string[]): Promise<object> {
  const command = commandNamed(words);
  return buildRequest(command, parseCommandLine(command, args).request, input);
}

describe("arguments", () => {
  it.each<[string, string[], object]>([
    ["keys get", ["key_1"], { keyId: "key_1" }],
    ["keys get", ["--key-id=key_1"], { keyId: "key_1" }],
    ["keys get", ["--", "--odd"], { keyId: "--odd" }],
    ["keys get", ["--key", "@key.txt"], { key: "live_secret" }],
    ["keys create", ["--api-id", "a", "--name", "-"], { apiId: "a", name: "-" }],
    ["keys create", ["--name=a=b"], { name: "a=b" }],
    ["keys create", ["--name="], { name: "" }],
    ["keys create", ["--remaining", "0", "--enabled"], { remaining: 0, enabled: true }],
    ["keys create", ["--enabled=false", "--use-defaults=true"], { enabled: false, useDefaults: true }],
    ["keys create", ["--enabled", "false", "--use-defaults", "true"], { enabled: false, useDefaults: true }],
    ["keys update", ["--enabled", "key_1"], { keyId: "key_1", enabled: true }],
    ["keys enable", ["key_1"], { keyId: "key_1", enabled: true }],
    ["keys disable", ["key_1", "--if-version", "3"], { keyId: "key_1", ifVersion: 3, enabled: false }],
    ["keys revoke", ["key_1"], { keyId: "key_1" }],
    [
      "keys create",
      ["--ratelimit.limit", "10", "--ratelimit.duration", "1m"],
      { ratelimit: { limit: 10, duration: 60_000 } },
    ],
    ["keys create", ["--ratelimit", '{"limit":1,"duration":1000}'], { ratelimit: { limit: 1, duration: 1000 } }],
    [
      "keys create",
      ["--ratelimit", '{"limit":1}', "--ratelimit.duration", "1s"],
      { ratelimit: { limit: 1, duration: 1000 } },
    ],
    [
      "keys create",
      ["--refill.interval", "daily", "--refill.carry-over"],
      { refill: { interval: "daily", carryOver: true } },
    ],
    ["keys create", ["--permissions", "a", "--permissions", "b"], { permissions: ["a", "b"] }],
    ["keys create", ["--expires", "2100-01-01"], { expires: 4_102_444_800_000 }],
    ["keys create", ["--expires", "2100-01-01T01:00:00+01:00"], { expires: 4_102_444_800_000 }],
    ["keys create", ["--expires", "4102444800000"], { expires: 4_102_444_800_000 }],
    ["keys create", ["--meta", '{"a":[1]}'], { meta: { a: [1] } }],
    ["keys create", ["--meta", "@meta.json"], { meta: { plan: "team" } }],
    [
      "keys create",
      ["--ratelimits.name", "a", "--ratelimits.limit", "1", "--ratelimits.name", "b", "--ratelimits.async=false"],
      {
        ratelimits: [
          { name: "a", limit: 1 },
          { name: "b", async: false },
        ],
      },
    ],
    [
      "keys create",
      ["--ratelimits", '{"name":"a"}', "--ratelimits", '[{"name":"b"}]'],
      { ratelimits: [{ name: "a" }, { name: "b" }] },
    ],
    ["apis create", ["x", "--defaults.ratelimit.limit", "5"], { apiId: "x", defaults: { ratelimit: { limit: 5 } } }],
    [
      "keys update",
      ["key_1", "--unset", "owner-id", "--unset", "refill"],
      { keyId: "key_1", ownerId: null, refill: null },
    ],
    ["keys update", ["key_1", "--data", '{"name":"a"}', "--unset", "name"], { keyId: "key_1", name: null }],
    ["keys reroll", ["key_1", "--overlap", "7d"], { keyId: "key_1", overlap: 604_800_000 }],
    [
      "keys create",
      ["--data", "@request.json", "--refill.amount", "9", "--permissions", "z", "--remaining", "6"],
      { apiId: "a", remaining: 6, refill: { interval: "daily", amount: 9 }, permissions: ["z"] },
    ],
    ["keys create", ["--data", '{"apiId":"a"}'], { apiId: "a" }],
    ["keys verify", ["--data", "@key.json"], { key: "live_secret" }],
    [
      "keys import",
      ["--api-id", "a", "--data", "@list.json"],
      { apiId: "a", keys: [{ digest: "1" }, { digest: "2" }] },
    ],
    [
      "keys import",
      ["--api-id", "a", "--data", "@lines.jsonl"],
      { apiId: "a", keys: [{ digest: "1" }, { digest: "2" }] },
    ],
    ["keys import", ["--api-id", "a", "--data", "@one.jsonl"], { apiId: "a", keys: [{ digest: "1" }] }],
    ["keys import", ["--data", '{"apiId":"a","keys":[]}'], { apiId: "a", keys: [] }],
    ["keys import", ["one.jsonl", "--api-id", "a"], { apiId: "a", keys: [{ digest: "1" }] }],
    ["keys import", ["@one.jsonl"], { keys: [{ digest: "1" }] }],
    [
      "keys import",
      ["--api-id", "a", "--keys.digest", "1", "--keys.refill.amount", "5"],
      { apiId: "a", keys: [{ digest: "1", refill: { amount: 5 } }] },
    ],
  ])("of %s %j make a request", async (words, args, request) => {
    expect(await requestOf(words, args)).toEqual(request);
  });

  it.each<[string, string[], string | RegExp]>([
    ["keys create", ["--apiId", "a"], "there is no flag --apiId; did you mean --api-id?"],
    ["keys create", ["--remianing=5"], "there is no flag --remianing; did you mean --remaining?"],
    ["keys create", ["-x"], "there is no flag -x"],
    ["keys create", ["--zzz=live_secret"], "there is no flag --zzz"],
    ["keys create", ["--name"], "--name needs a value"],
    ["keys create", ["--name", "--api-id", "a"], "--name needs a value"],
    ["keys create", ["--name", "a", "--name", "b"], "--name was given twice"],
    ["keys create", ["--api", "a"], "there is no flag --api; did you mean --api-id?"],
    ["keys create", ["--duration=1s"], "there is no flag --duration; did you mean --ratelimit.duration?"],
    ["keys create", ["-xlive_secret=a"], "there is no flag -x"],
    ["keys delete", ["--yes", "true", "key_1"], "--yes takes no value"],
    ["keys enable", ["key_1", "--name", "a"], "there is no flag --name"],
    ["keys disable", ["key_1", "--data", "{}"], "there is no flag --data"],
    ["keys import", ["list.json", "--data", "@list.json"], "it takes one file"],
    ["keys import", ["list.json", "lines.jsonl"], "it takes one file"],
    ["keys create", ["--enabled=no"], "--enabled must be true or false"],
    ["keys create", ["a"], "it takes flags only"],
    ["keys create", ["--remaining", "1.5"], "--remaining must be a whole number"],
    ["keys create", ["--remaining", "5m"], "--remaining must be a whole number"],
    ["keys create", ["--remaining", "99999999999999999"], "--remaining must be a whole number"],
    ["keys create", ["--expires", "tomorrow"], "--expires must be a date such as"],
    ["keys create", ["--expires", "2100-13-01"], "--expires must be a date such as"],
    ["keys create", ["--ratelimit.duration", "1w"], "--ratelimit.duration must be a length of time such as"],
    ["keys create", ["--refill.interval", "weekly"], "--refill.interval must be daily or monthly"],
    ["keys create", ["--meta", "live_secret"], "--meta must be JSON, or @ and the name of a file with JSON"],
    ["keys create", ["--meta", "[1]"], "--meta must be a JSON object"],
    [
      "keys create",
      ["--ratelimits.limit", "1"],
      "--ratelimits.name begins an element: give it before --ratelimits.limit",
    ],
    [
      "keys create",
      ["--ratelimits.name", "a", "--ratelimits.limit", "1", "--ratelimits.limit", "2"],
      "--ratelimits.limit was given twice for one element",
    ],
    [
      "keys create",
      ["--ratelimits", "{}", "--ratelimits.name", "a"],
      "--ratelimits and flags of its fields cannot be given together",
    ],
    ["keys update", ["key_1", "--unset", "enabled"], "--unset cannot remove enabled, but owner-id, name"],
    [
      "keys update",
      ["key_1", "--name", "a", "--unset", "name"],
      "--unset name and a value for it contradict each other",
    ],
    [
      "keys update",
      ["key_1", "--refill.amount", "1", "--unset", "refill"],
      "--unset refill and a value for it contradict",
    ],
    ["keys get", ["key_1", "key_2"], "it takes one argument without a flag: --key-id"],
    ["keys get", ["key_1", "--key-id", "key_2"], "--key-id was given twice"],
    ["keys get", ["--key", "live_secret"], "--key is a secret, and arguments are shown by ps"],
    ["keys get", ["--key", "@empty"], "--key is empty"],
    ["keys verify", ["live_secret"], "--key is a secret, and arguments are shown by ps"],
    ["keys verify", ["--data", '{"key":"live_secret"}'], "is a secret, and arguments are shown by ps"],
    ["keys create", ["--data", "@list.json"], "--data must be a JSON object"],
    ["keys delete", ["key_1", "--yes=maybe"], "--yes takes no value"],
    ["keys list", ["--json=x"], "--json takes no value"],
    ["keys list", ["-o", "jsno"], "--output must be table, wide, json, csv, name or key; did you mean json?"],
    ["keys list", ["-o", "key"], "--output key is for commands that make a secret"],
    ["limits limit", ["-oname"], "--output name is for answers with an id"],
    ["apis delete", ["a", "-o=csv"], "the answer of this command has no columns"],
    ["keys list", ["--json", "-o", "csv"], "--json and --output csv contradict each other"],
    ["keys list", ["--json", "--columns", "name"], "--columns is for tables and csv, not for json"],
    ["keys list", ["--columns", "key-id,nme"], /^--columns takes key-id, .*; did you mean name\?$/],
    ["keys list", ["--columns", "live_secret"], "--columns takes key-id, "],
    ["keys list", ["--timeout", "soon"], "--timeout must be a length of time"],
    ["keys list", ["--rootKey=live_secret"], "a root key is a secret"],
    ["keys import", ["--data", "@bad.jsonl"], /^line 3 of --data must be JSON$/],
    ["keys import", ["--data", "@number.jsonl"], /^line 2 of --data must be a JSON object$/],
    ["keys import", ["--data", "bad.jsonl"], "must be JSON, or @ and the name of a file with JSON"],
  ])("of %s %j are refused, and never repeated where they may be a secret", async (words, args, problem) => {
    const error = await requestOf(words, args).then(
      () => expect.fail("it was accepted"),
      (thrown: Error) => thrown,
    );
    expect(error).toMatchObject({ name: "UsageError", exitCode: 2 });
    expect(error.message).toMatch(problem);
    expect(error.message).not.toContain("live_secret");
  });
});

describe("--help", () => {
  it.each([
    ["--columns", "foo"],
    ["--output", "foo"],
    ["--timeout", "soon"],
  ])("comes before what is wrong with %s %s", (...wrong) => {
    expect(parseCommandLine(commandNamed("keys list"), [...wrong, "--help"])).toMatchObject({ wantsHelp: true });
  });
});

describe("flags", () => {
  it("have one meaning each", () => {
    for (const group of groups) {
      for (const command of group.commands) {
        const names = [...flagsOf(command), ...commonFlagsOf(command)].map(({ name }) => name);
        expect(new Set(names).size, `${group.name} ${command.name}: ${names.join(" ")}`).toBe(names.length);
      }
    }
  });
});

describe("the service that is called", () => {
  const file = "/dev/null";

  it.each<[object, Record<string, string>, object]>([
    [{}, {}, { url: "http://127.0.0.1:8080", rootKey: undefined }],
    [{}, { LATCHKEY_URL: "http://a", LATCHKEY_ROOT_KEY: "new, old" }, { url: "http://a", rootKey: "new" }],
    [{ url: "http://b" }, { LATCHKEY_URL: "http://a", LATCHKEY_ROOT_KEY: "x" }, { url: "http://b", rootKey: "x" }],
    [{ url: "http://b" }, { LATCHKEY_PROFILE: "none" }, { url: "http://b", rootKey: undefined }],
  ])("is, by %j and %j, %j", (flags, environment, connection) => {
    const noData = { LATCHKEY_DATA_DIR: "/nonexistent", XDG_CONFIG_HOME: "/nonexistent" };
    expect(readConnection(flags, { ...noData, ...environment })).toMatchObject(connection);
  });

  it.each<[object, Record<string, string>, string]>([
    [{}, { LATCHKEY_ROOT_KEY: "x", LATCHKEY_ROOT_KEY_FILE: file }, "are both set"],
    [{}, { LATCHKEY_ROOT_KEY_FILE: "/nonexistent" }, "cannot be read from LATCHKEY_ROOT_KEY_FILE: ENOENT"],
    [{}, { LATCHKEY_PROFILE: "a", LATCHKEY_URL: "http://a" }, "LATCHKEY_PROFILE and LATCHKEY_URL are both set"],
    [{ profile: "a", url: "http://a" }, {}, "cannot be given together"],
  ])("is refused by %j and %j", (flags, environment, problem) => {
    expect(() => readConnection(flags, environment)).toThrow(problem);
  });
});
