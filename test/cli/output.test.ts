import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { CommandField } from "../../gen/latchkey/v1/commands.ts";
import { columnsToPrint } from "../../src/cli/commands/columns.ts";
import { type CliCommand, groups } from "../../src/cli/commands/groups.ts";
import { printCsv, printOutput } from "../../src/cli/commands/print-output.ts";
import { builtProgram } from "../support/artefact.ts";
import { type LatchkeyProcess, runLatchkey, startLatchkey } from "../support/latchkey-process.ts";
import { rawClient } from "../support/raw-client.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { runOnTerminal } from "../support/terminal.ts";
import { testRootKey } from "../support/test-root-key.ts";

let latchkey: LatchkeyProcess;
let environment: Record<string, string>;
const undos: (() => void)[] = [];
beforeAll(async () => {
  const settings = { LATCHKEY_DATA_DIR: tempFolder((undo) => undos.push(undo)), LATCHKEY_ROOT_KEY: testRootKey };
  latchkey = await startLatchkey(settings, undefined, (undo) => undos.push(undo));
  environment = {
    LATCHKEY_URL: latchkey.baseUrl,
    LATCHKEY_ROOT_KEY: testRootKey,
    HOME: tempFolder((undo) => undos.push(undo)),
  };
});
afterAll(() => {
  for (const undo of undos) undo();
});

/** Types a command, with words without spaces. */
function type(line: string) {
  return runLatchkey(line.split(" "), environment);
}

function client() {
  return rawClient({ baseUrl: latchkey.baseUrl, rootKey: testRootKey });
}

describe.concurrent("the output", () => {
  it("is only the secret, or only ids, for scripts", async () => {
    const made = await type("keys create --api-id scripts -o key");
    expect(made).toEqual({ code: 0, stdout: expect.stringMatching(/^\w{39}\n$/), stderr: "" });
    expect(await client().keys.verifyKey({ key: made.stdout.trim() })).toMatchObject({ valid: true });
    const { stdout: named } = await type("keys create --api-id scripts --output name");
    const list = await type("keys list --api-id scripts -oname");
    expect(list.stdout).toMatch(/^(key_\w+\n){2}$/);
    expect(list.stdout.startsWith(named)).toBe(true);
    const keyId = named.trim();
    for (const command of ["disable", "enable", "update-remaining --op=set --value=5", "reroll"])
      expect(await type(`keys ${command} ${keyId} -o name`)).toMatchObject({ code: 0, stdout: named });
    expect(await type(`keys revoke ${keyId} --yes -o name`)).toMatchObject({ code: 0, stdout: named });
    expect(await type(`keys get ${keyId}`)).toMatchObject({ code: 1 });
  });

  it("has the columns that were asked for, in this order, also where a terminal has no room for them", async () => {
    const limited = { apiId: "columns", name: "Ada", ratelimit: { limit: 5, duration: 60_000 } };
    const { keyId } = await client().keys.createKey(limited);
    const names = "name,keyId,RATELIMIT,ratelimit.limit,refill.next-refill-at";
    const [table, csv, single] = await Promise.all([
      type(`keys list --api-id columns --columns ${names}`),
      type(`keys list --api-id columns --columns ${names} -o csv`),
      type(`keys get ${keyId} --columns enabled,ratelimit.duration`),
    ]);
    expect(table.stdout).toMatch(
      /^NAME {2}KEY-ID +RATELIMIT +RATELIMIT.LIMIT {2}REFILL.NEXT-REFILL-AT\nAda {3}key_\w+ {2}async=true limit=5 duration=1m {2}5\n$/,
    );
    expect(csv.stdout).toBe(
      `name,key-id,ratelimit,ratelimit.limit,refill.next-refill-at\r\nAda,${keyId},"async=true limit=5 duration=1m",5,\r\n`,
    );
    expect(single.stdout).toBe("enabled             true\nratelimit.duration  1m\n");
    const typed = `'${process.execPath}' '${builtProgram()}' keys list --api-id columns`;
    const options = { environment, folder: tempFolder(), columns: 60 };
    const [narrow, wide] = await Promise.all([
      runOnTerminal(typed, options),
      runOnTerminal(`${typed} -o wide`, options),
    ]);
    expect(narrow.shown).toContain("--output wide has all.");
    expect(wide.shown).toContain("duration=1m");
    expect(wide.shown).not.toContain("No room");
  });

  it("of an import as csv has all keys, and those that failed", async () => {
    const file = join(tempFolder(), "keys.jsonl");
    const line = JSON.stringify({ digest: "a".repeat(64) });
    writeFileSync(file, `${line}\n${line}\n`);
    const { code, stdout } = await type(`keys import ${file} --api-id imported -o csv`);
    expect(code).toBe(1);
    expect(stdout).toMatch(/^number,key-id,error\r\n1,key_\w+,\r\n2,,"code=CONFLICT message=[^"]+"\r\n$/);
  });
});

describe.concurrent("keys list without an API", () => {
  it("lists the keys of all APIs, and finds a key by its first characters", async () => {
    const { keys } = client();
    for (const apiId of ["all-1", "all-2"])
      for (let i = 0; i < 3; i++) await keys.createKey({ apiId, prefix: "every", name: `${apiId}-${i}` });
    const lines = async (line: string) => (await type(line)).stdout.trim().split("\n").slice(1);
    const search = "keys list --search every_ --columns name";
    expect(await lines(search)).toEqual(["all-2-2", "all-2-1", "all-2-0", "all-1-2", "all-1-1", "all-1-0"]);
    expect(await lines(`${search} --limit 1 --all`)).toHaveLength(6);
    const cut = await type(`${search} --limit 4 -o csv`);
    expect(cut.stdout.split("\r\n")).toHaveLength(6);
    expect(cut.stderr).toBe("There is more: --all for everything, --api-id for the keys of one API.\n");
    const { keys: found } = await keys.listKeys({ apiId: "all-1", search: "all-1-1" });
    const { stdout } = await type(`keys list --search ${found[0]?.start} --json`);
    expect(JSON.parse(stdout)).toEqual({ keys: found });
    const whole = await type("keys list --search every_ --limit 6");
    expect(whole).toMatchObject({ code: 0, stderr: "" });
    expect(await type("keys list --cursor x")).toMatchObject({ code: 2, stdout: "" });
  });
});

describe("csv", () => {
  const field = (name: string, kind: CommandField["type"] = "string"): CommandField => ({
    name,
    type: kind,
    details: "",
  });
  const [text, number] = columnsToPrint([field("text"), field("left", "integer")]);

  it.each<[unknown, string]>([
    ["plain text", "plain text"],
    [undefined, ""],
    ['a,"b"', '"a,""b"""'],
    ["a;b", '"a;b"'],
    ["a\nb", '"a\\u000ab"'],
    ["=1+1", `"'=1+1"`],
    ["+1", `"'+1"`],
    ["-1", `"'-1"`],
    ["@A1", `"'@A1"`],
    ["＝1", `"'＝1"`],
    ["\t=1", '"\\u0009=1"'],
    ["a=1", '"a=1"'],
  ])("has %j as %s: nothing is a formula, or breaks a cell", (value, cell) => {
    expect(printCsv([text as never, number as never], [{ text: value, left: -1 }])).toBe(`text,left\r\n${cell},-1\r\n`);
  });
});

describe("a series", () => {
  const command = groups.find(({ name }) => name === "usage")?.commands[0] as CliCommand;
  const day = (date: string, spent: number, running = false) => {
    const start = Date.parse(`2026-11-${date}`);
    return { start, end: start + 86_400_000, spent, running };
  };
  const answer = {
    results: [
      { ownerId: "=acme", spent: 30, buckets: [day("01", 10), day("02", 0), day("03", 20, true)], remaining: 7 },
      { ownerId: "b", spent: 0, buckets: [day("01", 0), day("02", 0), day("03", 0, true)] },
    ],
  };
  const print = (format: "csv" | "table", columns: number | undefined, shown: object = answer) => {
    const toPrint = { command, request: {}, answer: shown as never, columns: undefined };
    return printOutput(format, { ...toPrint, screen: { columns, hasColours: false } }).stdout;
  };

  it("is a table of its points, with a bar for each on a terminal, below that of what they belong to", () => {
    const lines = print("table", 120).split("\n");
    expect(lines.slice(0, 7)).toEqual([
      "results",
      "OWNER-ID  SPENT  REMAINING",
      "=acme     30     7",
      "b         0",
      "",
      "buckets",
      "OWNER-ID  START                 END                   SPENT  RUNNING",
    ]);
    expect(lines[7]).toMatch(/^=acme +2026-11-01 00:00:00Z +2026-11-02 00:00:00Z +10 +false +█{20}$/);
    expect(lines[8]).toMatch(/ 0 +false$/);
    expect(lines[9]).toMatch(/ 20 +true +█{40}$/);
    expect(print("table", undefined)).not.toContain("█");
    const total = { results: [{ ownerId: "b", spent: 5, buckets: [day("01", 5)] }] };
    expect(print("table", 90, total)).not.toContain("buckets");
  });

  it("is a row of csv for each point, with the id of what it belongs to", () => {
    const [head, first, , , last] = print("csv", undefined).split("\r\n");
    expect(head).toBe("key-id,owner-id,start,end,spent,running");
    expect(first).toBe(`,"'=acme",2026-11-01 00:00:00Z,2026-11-02 00:00:00Z,10,false`);
    expect(last).toBe(",b,2026-11-01 00:00:00Z,2026-11-02 00:00:00Z,0,false");
  });
});
