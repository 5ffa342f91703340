import { execFile } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { builtProgram } from "../support/artefact.ts";
import { type LatchkeyProcess, startLatchkey } from "../support/latchkey-process.ts";
import { freePort } from "../support/local-server.ts";
import { rawClient } from "../support/raw-client.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { runOnTerminal } from "../support/terminal.ts";
import { testRootKey } from "../support/test-root-key.ts";

let latchkey: LatchkeyProcess;
let dataDir: string;
const undos: (() => void)[] = [];
beforeAll(async () => {
  dataDir = join(
    tempFolder((undo) => undos.push(undo)),
    "data",
  );
  latchkey = await startLatchkey({ LATCHKEY_DATA_DIR: dataDir }, undefined, (undo) => undos.push(undo));
});
afterAll(() => {
  for (const undo of undos) undo();
});

/** Runs lines of a shell in a folder, with `latchkey` as it is typed. */
async function shell(script: string, environment: Record<string, string> = {}, folder = tempFolder()) {
  const env = { PATH: process.env.PATH, HOME: folder, ...environment };
  const run = promisify(execFile)("bash", ["-c", `${defineLatchkey()}\n${script}`], { cwd: folder, env });
  const done = await run.then(
    (output) => ({ code: 0, ...output }),
    (error: { code: number; stdout: string; stderr: string }) => error,
  );
  return { code: done.code, stdout: done.stdout, stderr: done.stderr };
}

function defineLatchkey(): string {
  return `latchkey() { '${process.execPath}' '${builtProgram()}' "$@"; }`;
}

function generatedRootKey(): string {
  return readFileSync(join(dataDir, "root-key"), "utf8").trim();
}

function atService(extra: Record<string, string> = {}): Record<string, string> {
  return { LATCHKEY_URL: latchkey.baseUrl, LATCHKEY_ROOT_KEY: generatedRootKey(), ...extra };
}

describe.concurrent("a command", () => {
  it("exits with 1 for what is refused, 2 for wrong use, 3 for what may succeed later", async () => {
    const nobody = { ...atService(), LATCHKEY_URL: `http://127.0.0.1:${await freePort()}` };
    const [refused, invalid, wrong, unsendable, away, undecided, unauthorised, keyless] = await Promise.all([
      shell("latchkey keys get key_none", atService()),
      shell("echo nonsense | latchkey keys verify", atService()),
      shell("latchkey keys get --key-id", atService()),
      shell("latchkey apis create --idempotency-key 'a b'", atService()),
      shell("latchkey keys get key_none", nobody),
      shell("echo nonsense | latchkey keys verify", nobody),
      shell("latchkey keys get key_none", atService({ LATCHKEY_ROOT_KEY: testRootKey })),
      shell("latchkey keys get key_none", { LATCHKEY_URL: latchkey.baseUrl }),
    ]);
    expect(refused).toMatchObject({ code: 1, stdout: "" });
    expect(refused.stderr).toMatch(/^NOT_FOUND: there is no such key\nrequest req_\w+\n$/);
    expect(invalid).toMatchObject({ code: 1, stderr: "" });
    expect(invalid.stdout).toMatch(/^valid +false\ncode +NOT_FOUND\n/);
    expect(wrong).toMatchObject({ code: 2, stdout: "" });
    expect(wrong.stderr).toContain("latchkey keys get: --key-id needs a value");
    expect(unsendable).toMatchObject({ code: 2, stdout: "" });
    expect(unsendable.stderr).toContain("--idempotency-key must be 1 to 255 visible ASCII characters");
    for (const { code, stdout, stderr } of [away, undecided]) {
      expect({ code, stdout }).toEqual({ code: 3, stdout: "" });
      expect(stderr).toMatch(/^NETWORK_ERROR: .+ at http:\S+ \(ECONNREFUSED\)\nnothing listens there: .+ --url, .+\n$/);
    }
    expect(unauthorised).toMatchObject({ code: 1, stdout: "" });
    expect(unauthorised.stderr).toMatch(
      /^UNAUTHORIZED: .*\nthe root key is from LATCHKEY_ROOT_KEY\nrequest req_\w+\n$/,
    );
    expect(keyless).toMatchObject({ code: 2, stdout: "" });
    expect(keyless.stderr).toContain("there is no root key");
  });

  it("uses the generated root key of the data folder for a service on this machine, and for no other", async () => {
    const beside = { LATCHKEY_URL: latchkey.baseUrl, LATCHKEY_DATA_DIR: dataDir };
    const local = await shell("latchkey apis list --json", beside);
    expect(local).toMatchObject({ code: 0, stderr: "" });
    const elsewhere = await shell("latchkey apis list", { ...beside, LATCHKEY_URL: "http://192.0.2.1:8080" });
    expect(elsewhere).toMatchObject({ code: 2, stdout: "" });
    expect(elsewhere.stderr).toContain("there is no root key");
  });

  it("warns once where the root key goes over plain http to another machine", async () => {
    const { keys } = rawClient({ baseUrl: latchkey.baseUrl, rootKey: generatedRootKey() });
    for (let i = 0; i < 2; i++) await keys.createKey({ apiId: "warned" });
    // It reaches this machine, and is no loopback address.
    const elsewhere = latchkey.baseUrl.replace("127.0.0.1", "0.0.0.0");
    const list = "latchkey keys list --api-id warned --limit 1 --all --json";
    const [sent, byName, keyless, refused] = await Promise.all([
      shell(list, atService({ LATCHKEY_URL: elsewhere })),
      shell(list, atService({ LATCHKEY_URL: latchkey.baseUrl.replace("127.0.0.1", "localhost") })),
      shell("echo nonsense | latchkey keys verify", { LATCHKEY_URL: elsewhere }),
      shell("latchkey keys delete key_none", atService({ LATCHKEY_URL: elsewhere })),
    ]);
    const warning = `warning: the root key is sent to ${new URL(elsewhere).host} in cleartext: use an https:// address unless the network is private\n`;
    expect(sent).toMatchObject({ code: 0, stdout: expect.stringMatching(/^\{"keys"/), stderr: warning });
    expect(byName).toMatchObject({ code: 0, stderr: "" });
    expect(keyless).toMatchObject({ code: 1, stderr: "" });
    expect(refused).toMatchObject({ code: 2, stderr: expect.not.stringContaining("warning") });
  });

  it("never takes a secret as an argument, and does not repeat it", async () => {
    const lines = ["keys verify lk_secret", "keys verify --key=lk_secret", "keys get --key lk_secret"];
    const rootKeys = ["keys list --root-key lk_secret", "profile set x --url http://127.0.0.1 --root-key lk_secret"];
    const runs = [...lines, ...rootKeys].map((line) => shell(`latchkey ${line} </dev/null`, atService()));
    for (const { code, stdout, stderr } of await Promise.all(runs)) {
      expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
      expect(stderr).toContain("is a secret, and arguments are shown by ps");
      expect(stderr).not.toContain("lk_secret");
    }
  });

  it("asks for a secret on a terminal without showing it", async () => {
    const { keys } = rawClient({ baseUrl: latchkey.baseUrl, rootKey: generatedRootKey() });
    const { key } = await keys.createKey({ apiId: "asked" });
    const replies = [{ when: /key \(not shown\): $/, type: `${key}x\u007f\r` }];
    const options = { environment: atService({ HOME: tempFolder() }), folder: tempFolder(), replies };
    const { code, shown } = await runOnTerminal(`${defineLatchkey()}\nlatchkey keys verify`, options);
    expect(shown).toContain("\u001b[32mtrue\u001b[0m");
    expect(code).toBe(0);
    expect(shown).not.toContain(key);
  });

  it("has colours on a terminal only, and not where NO_COLOR is set", async () => {
    const options = { environment: atService({ HOME: tempFolder(), NO_COLOR: "1" }), folder: tempFolder() };
    const [plain, piped] = await Promise.all([
      runOnTerminal(`${defineLatchkey()}\nlatchkey apis create plain`, options),
      shell("latchkey apis create piped", atService()),
    ]);
    expect(plain.shown).toMatch(/^api-id +plain$/m);
    expect(piped.stdout).toMatch(/^api-id +piped$/m);
    for (const text of [plain.shown, piped.stdout]) expect(text).not.toContain("\u001b");
  });

  it("shows texts that would control the terminal as escapes, and leaves them as they are in JSON for a pipe", async () => {
    const { apis } = rawClient({ baseUrl: latchkey.baseUrl, rootKey: generatedRootKey() });
    const name = "a\u001b[31m\nb\u202e\u009b31m\u0085\u007f";
    await apis.createApi({ apiId: "hostile", name });
    const options = { environment: atService({ HOME: tempFolder() }), folder: tempFolder() };
    const [table, piped, json] = await Promise.all([
      shell("latchkey apis get hostile", atService()),
      shell("latchkey apis get hostile --json", atService()),
      runOnTerminal(`${defineLatchkey()}\nlatchkey apis get hostile --json`, options),
    ]);
    expect(table.stdout).toContain("name             a\\u001b[31m\\u000ab\\u202e\\u009b31m\\u0085\\u007f\n");
    expect(piped.stdout).toContain(JSON.stringify(name));
    expect(json.shown).toContain('\n  "name": "a\\u001b[31m\\nb\\u202e\\u009b31m\\u0085\\u007f",\n');
    expect(JSON.parse(json.shown)).toEqual(JSON.parse(piped.stdout));
  });

  it("deletes nothing unless somebody said so", async () => {
    const { apis } = rawClient({ baseUrl: latchkey.baseUrl, rootKey: generatedRootKey() });
    await apis.createApi({ apiId: "kept" });
    const options = { environment: atService({ HOME: tempFolder() }), folder: tempFolder() };
    const replies = [{ when: /\[y\/N\] $/, type: "n\r" }];
    const typed = `${defineLatchkey()}\nlatchkey apis delete kept`;
    const [piped, denied, interrupted] = await Promise.all([
      shell("latchkey apis delete kept", atService()),
      runOnTerminal(typed, { ...options, replies }),
      runOnTerminal(typed, { ...options, replies: [{ when: /\[y\/N\] $/, type: "\u0003" }] }),
    ]);
    expect(piped).toMatchObject({ code: 2, stderr: expect.stringContaining("--yes says that you are sure") });
    expect(denied).toMatchObject({ code: 1, shown: expect.stringContaining("nothing was done") });
    expect(interrupted).toMatchObject({ code: 130 });
    expect(await apis.getApi({ apiId: "kept" })).toMatchObject({ apiId: "kept" });
  });

  it("lists one page and tells how to go on, or all pages as one answer", async () => {
    const { keys } = rawClient({ baseUrl: latchkey.baseUrl, rootKey: generatedRootKey() });
    for (let i = 0; i < 5; i++) await keys.createKey({ apiId: "paged", name: `key ${i}` });
    const [first, all, whole] = await Promise.all([
      shell("latchkey keys list --api-id paged --limit 2", atService()),
      shell("latchkey keys list --api-id paged --limit 2 --all", atService()),
      shell("latchkey keys list --api-id paged --limit 2 --all --json", atService()),
    ]);
    const rows = (text: string) => text.match(/key \d/g);
    expect(rows(first.stdout)).toEqual(["key 4", "key 3"]);
    const [, cursor = ""] =
      /^There is more: --cursor (\S+) for the next page, --all for everything\.\n$/.exec(first.stderr) ?? [];
    const second = await shell(`latchkey keys list --api-id paged --limit 2 --cursor ${cursor}`, atService());
    expect(rows(second.stdout)).toEqual(["key 2", "key 1"]);
    expect(rows(all.stdout)).toEqual(["key 4", "key 3", "key 2", "key 1", "key 0"]);
    expect(all.stderr).toBe("");
    const answer = JSON.parse(whole.stdout) as { keys: object[] };
    expect(Object.keys(answer)).toEqual(["keys"]);
    expect(answer.keys).toHaveLength(5);
  });

  it("ends without a complaint when its reader has seen enough", async () => {
    const { stdout, stderr } = await shell("latchkey keys create --help | head -1", atService());
    expect({ stdout, stderr }).toEqual({ stdout: "Usage: latchkey keys create [flags]\n", stderr: "" });
  });

  it("suggests what was probably meant, and tells its commands and flags", async () => {
    const [group, command, help, same, none] = await Promise.all([
      shell("latchkey kyes list"),
      shell("latchkey keys gte"),
      shell("latchkey keys list --help"),
      shell("latchkey help keys list"),
      shell("latchkey keys"),
    ]);
    expect(group).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^there is no command "kyes"; did you mean keys\?\n/),
    });
    expect(command).toMatchObject({ code: 2, stderr: 'latchkey keys has no command "gte"; did you mean get?\n' });
    expect(help).toMatchObject({ code: 0, stdout: expect.stringContaining("Exit codes: 0 done; 1 refused") });
    expect(same).toEqual(help);
    expect(none).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining("latchkey keys reroll") });
  });
});

describe.concurrent("a profile", () => {
  it("keeps address and root key in a file that only its owner can read, and is not mixed with others", async () => {
    const folder = tempFolder();
    const environment = atService();
    const set = `printf %s "$LATCHKEY_ROOT_KEY" | latchkey profile set production --url ${latchkey.baseUrl}`;
    expect(await shell(set, environment, folder)).toMatchObject({ code: 0, stderr: "" });
    const file = join(folder, ".config/latchkey/production.json");
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(JSON.parse(readFileSync(file, "utf8"))).toEqual({ url: latchkey.baseUrl, rootKey: generatedRootKey() });
    const other = { LATCHKEY_URL: "http://192.0.2.1", LATCHKEY_ROOT_KEY: testRootKey };
    const [named, byVariable, mixed, both, listed, misspelt] = await Promise.all([
      shell("latchkey apis list --json --profile production", other, folder),
      shell("latchkey apis list --json", { LATCHKEY_PROFILE: "production" }, folder),
      shell("latchkey apis list", { LATCHKEY_PROFILE: "production", LATCHKEY_ROOT_KEY: testRootKey }, folder),
      shell("latchkey apis list --profile production --url http://192.0.2.1", {}, folder),
      shell("latchkey profile list", {}, folder),
      shell("latchkey apis list --profile prodution", {}, folder),
    ]);
    for (const { code, stdout } of [named, byVariable])
      expect({ code, stdout }).toMatchObject({ code: 0, stdout: expect.stringMatching(/^\{"apis"/) });
    expect(mixed).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("LATCHKEY_PROFILE and LATCHKEY_ROOT_KEY are both set"),
    });
    expect(both).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("--url and --profile cannot be given together"),
    });
    expect(listed.stdout).toBe(`NAME        URL\nproduction  ${latchkey.baseUrl}\n`);
    expect(misspelt).toMatchObject({ code: 2, stderr: expect.stringContaining("did you mean production?") });

    chmodSync(file, 0o640);
    const refused = await shell("latchkey apis list --profile production", {}, folder);
    expect(refused).toMatchObject({ code: 1, stdout: "" });
    expect(refused.stderr).toContain(`other users can read the profile production: type chmod 600 '${file}'`);
    expect(await shell("latchkey profile remove production", {}, folder)).toMatchObject({ code: 0 });
    expect(existsSync(file)).toBe(false);
  });

  it("is not written into a folder that others can read, and only with what can be used", async () => {
    const folder = tempFolder();
    mkdirSync(join(folder, ".config/latchkey"), { recursive: true, mode: 0o755 });
    chmodSync(join(folder, ".config/latchkey"), 0o755);
    const [open, ftp, name] = await Promise.all([
      shell("echo x | latchkey profile set a --url http://127.0.0.1", {}, folder),
      shell("echo x | latchkey profile set a --url ftp://127.0.0.1"),
      shell("echo x | latchkey profile set ../a --url http://127.0.0.1"),
    ]);
    expect(open).toMatchObject({ code: 1, stderr: expect.stringContaining("nothing was written") });
    expect(ftp).toMatchObject({ code: 2, stderr: expect.stringContaining("--url must be an http or https URL") });
    expect(name).toMatchObject({ code: 2, stderr: expect.stringContaining("the name of a profile is") });
  });

  it("asks for its root key on a terminal without showing it", async () => {
    const folder = tempFolder();
    const replies = [{ when: /root key \(not shown\): $/, type: `\u001b[200~${testRootKey} \u001b[201~\r` }];
    const typed = `${defineLatchkey()}\nlatchkey profile set mine --url https://keys.example.com`;
    const { code, shown } = await runOnTerminal(typed, { environment: { HOME: folder }, folder, replies });
    expect({ code, hidden: !shown.includes(testRootKey) }).toEqual({ code: 0, hidden: true });
    const profile = { url: "https://keys.example.com", rootKey: testRootKey };
    expect(JSON.parse(readFileSync(join(folder, ".config/latchkey/mine.json"), "utf8"))).toEqual(profile);
  });
});

describe.concurrent("an import", () => {
  it("of more keys than a request takes is sent in pieces, and tells which keys failed", async () => {
    const folder = tempFolder();
    const digest = (i: number) => i.toString(16).padStart(64, "0");
    const lines = Array.from({ length: 250 }, (_, i) => JSON.stringify({ digest: digest(i), name: `key ${i}` }));
    writeFileSync(join(folder, "keys.jsonl"), [...lines, lines[7]].join("\n"));
    const { code, stdout, stderr } = await shell(
      "latchkey keys import --api-id many --data @keys.jsonl",
      atService(),
      folder,
    );
    expect(code).toBe(1);
    expect(stdout).toMatch(/^NUMBER +ERROR\n251 +code=CONFLICT message=.+\n$/);
    expect(stderr).toMatch(/^(keys: \d+ of 251\n)*keys: 251 of 251\n250 of 251 keys were imported\.\n$/);
    const listed = await shell("latchkey keys list --api-id many --limit 100 --all --json", atService());
    expect((JSON.parse(listed.stdout) as { keys: object[] }).keys).toHaveLength(250);
  });

  it("stops at the first piece that fails, and says what is imported", async () => {
    const folder = tempFolder();
    const digest = (i: number) => (i + 1000).toString(16).padStart(64, "0");
    const lines = Array.from({ length: 250 }, (_, i) => ({ digest: digest(i), remaining: i === 120 ? -1 : 1 }));
    writeFileSync(join(folder, "keys.json"), JSON.stringify(lines));
    const options = { environment: atService({ HOME: folder }), folder, columns: 200 };
    const typed = `${defineLatchkey()}\nlatchkey keys import --api-id stopped --data @keys.json`;
    const { code, shown } = await runOnTerminal(typed, options);
    expect(code).toBe(1);
    expect(shown).toMatch(/keys {13}█{12}░{18} {2}40% {2}100 of 250\nBAD_REQUEST: /);
    expect(shown).toContain(
      "of the first 100 of 250, 100 are imported. None of numbers 101 to 200 is, and no others were sent.",
    );
  });
});
