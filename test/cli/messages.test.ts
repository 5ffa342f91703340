import { once } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import https from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type LatchkeyProcess, runLatchkey, startLatchkey } from "../support/latchkey-process.ts";
import { type Certificate, expireCertificate, makeCertificate } from "../support/make-certificate.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { testRootKey } from "../support/test-root-key.ts";

let latchkey: LatchkeyProcess;
let folder: string;
const undos: (() => void)[] = [];
beforeAll(async () => {
  folder = tempFolder((undo) => undos.push(undo));
  const settings = { LATCHKEY_DATA_DIR: join(folder, "data"), LATCHKEY_ROOT_KEY: testRootKey };
  latchkey = await startLatchkey(settings, undefined, (undo) => undos.push(undo));
});
afterAll(() => {
  for (const undo of undos) undo();
});

/** Types a command, with words without spaces, for the service of this file. */
function type(line: string, environment: Record<string, string> = {}) {
  const own = { LATCHKEY_URL: latchkey.baseUrl, LATCHKEY_ROOT_KEY: testRootKey, HOME: folder };
  return runLatchkey(line.split(" "), { ...own, ...environment });
}

it.concurrent.each(["null", "{}", "[", '{"url":1}'])("a profile that holds %s is damaged", async (text) => {
  const home = tempFolder();
  mkdirSync(join(home, ".config/latchkey"), { recursive: true, mode: 0o700 });
  writeFileSync(join(home, ".config/latchkey/torn.json"), text, { mode: 0o600 });
  const { code, stderr } = await type("apis list --profile torn", { HOME: home });
  expect(code).toBe(1);
  expect(stderr).toBe("the profile torn is damaged: make it again with latchkey profile set torn\n");
});

describe.concurrent("without a root key", () => {
  it("a profile is written with a remark, and commands that need one say how the profile gets it", async () => {
    writeFileSync(join(folder, "empty"), "\n");
    const set = await type(`profile set keyless --url ${latchkey.baseUrl} --root-key @${join(folder, "empty")}`);
    expect(set).toMatchObject({ code: 0, stdout: expect.stringMatching(/^written to .+keyless\.json\n$/) });
    expect(set.stderr).toBe("no root key was given: commands with this profile can verify only\n");
    const { code, stdout, stderr } = await type("apis list --profile keyless");
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toContain(
      "the profile keyless has no root key: latchkey profile set keyless --url http://127.0.0.1",
    );
    expect(stderr).not.toContain("LATCHKEY_ROOT_KEY");
  });

  it("a command names everything where it has looked for one", async () => {
    const dataDir = join(folder, "other-data");
    mkdirSync(dataDir);
    const keyless = { LATCHKEY_ROOT_KEY: "", LATCHKEY_DATA_DIR: dataDir };
    const [embedded, postgres, elsewhere] = await Promise.all([
      type("apis list", keyless),
      type("apis list", { ...keyless, DATABASE_URL: "postgres://127.0.0.1:1/none" }),
      type("apis list", { ...keyless, LATCHKEY_URL: "https://192.0.2.1" }),
    ]);
    const unset = "there is no root key: LATCHKEY_ROOT_KEY and LATCHKEY_ROOT_KEY_FILE are not set, and";
    expect(embedded.stderr).toContain(`${unset} ${dataDir}/root-key cannot be read: ENOENT.`);
    expect(postgres.stderr).toContain(`${unset} ${dataDir}/root-key-postgres cannot be read: ENOENT.`);
    expect(elsewhere.stderr).toContain(`${unset} the key of a data folder is for services on this machine only.`);
    for (const { code, stdout } of [embedded, postgres, elsewhere])
      expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  });
});

describe.concurrent("what the service refuses", () => {
  it("is told by the flags that have to be typed", async () => {
    expect(await type("keys create --api-id flags")).toMatchObject({ code: 0 });
    const lines: [line: string, problem: string][] = [
      ["keys list --api-id flags --limit 9999", "BAD_REQUEST: --limit: must be "],
      ["apis delete flags --yes", "CONFLICT: the API has keys; delete them first, or give --force\n"],
      [
        "keys update key_1",
        "BAD_REQUEST: the request changes nothing; give at least one of --owner-id, --name, --meta, ",
      ],
      [
        "keys create --api-id flags --ratelimits.name a --refill.interval daily",
        "BAD_REQUEST: --refill.amount: is required and must not be 0\n" +
          "  --ratelimits.limit (number 1): is required and must not be 0\n" +
          "  --ratelimits.duration (number 1): is required and must not be 0\n",
      ],
      [
        "root-keys create --permissions keys.read --permissions x",
        "BAD_REQUEST: --permissions (number 2): is not known",
      ],
    ];
    for (const [line, problem] of lines) {
      const { code, stdout, stderr } = await type(line);
      expect({ code, stdout }, line).toEqual({ code: 1, stdout: "" });
      expect(stderr.slice(0, problem.length), line).toBe(problem);
    }
  });
});

it("a root key that the service refuses for the 21st time is no outage: it says where the root key is from", async () => {
  const wrong = { LATCHKEY_ROOT_KEY: "wrong".repeat(8) };
  const headers = { authorization: `Bearer ${wrong.LATCHKEY_ROOT_KEY}`, "content-type": "application/json" };
  for (let i = 0; i < 20; i++)
    await fetch(`${latchkey.baseUrl}/v1/apis.listApis`, { method: "POST", headers, body: "{}" });
  const { code, stdout, stderr } = await type("apis list", wrong);
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toMatch(/^TOO_MANY_REQUESTS: .+\nthe root key is from LATCHKEY_ROOT_KEY\nrequest req_\w+\n$/);
});

it("the help of a command names flags, not the fields of JSON", async () => {
  const { code, stdout } = await type("keys list --help");
  expect(code).toBe(0);
  expect(stdout).toMatch(/--api-id TEXT +Only keys of this API: 1 to 255 characters. Default: keys of all APIs\.\n/);
  expect(stdout).not.toMatch(/ownerId|apiId/);
});

describe.concurrent("a malformed key of an import", () => {
  it.each([1, 2, 220])("is told by its number in the whole file: %i", async (wrong) => {
    const digest = (i: number) => (i + wrong * 1000).toString(16).padStart(64, "0");
    const keys = Array.from({ length: 250 }, (_, i) => ({ digest: i + 1 === wrong ? "short" : digest(i) }));
    const file = join(folder, `keys-${wrong}.jsonl`);
    writeFileSync(file, keys.map((key) => JSON.stringify(key)).join("\n"));
    const { code, stdout, stderr } = await type(`keys import --api-id import-${wrong} --data @${file}`);
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toContain(`BAD_REQUEST: number ${wrong}: digest: `);
    const before = Math.floor(wrong / 100) * 100;
    expect(stderr).toContain(
      `stopped: of the first ${before} of 250, ${before} are imported. None of numbers ${before + 1} `,
    );
  });
});

describe.concurrent("an address", () => {
  it("without http:// is answered with the whole one, unless it may be a secret", async () => {
    const [local, remote, profile, secret] = await Promise.all([
      type("apis list --url 127.0.0.1:8080"),
      type("apis list", { LATCHKEY_URL: "keys.example.com:443" }),
      type("profile set x --url localhost:8080 --root-key @/dev/null"),
      type("apis list --url lk_secret"),
    ]);
    expect(local.stderr).toContain("; did you mean http://127.0.0.1:8080?\n");
    expect(remote.stderr).toContain("; did you mean https://keys.example.com:443?\n");
    expect(profile.stderr).toContain("; did you mean http://localhost:8080?\n");
    expect(secret.stderr).not.toContain("lk_secret");
    for (const { code } of [local, remote, profile, secret]) expect(code).toBe(2);
  });

  it("that speaks the other protocol, or has a certificate that is not trusted, is told as such", async () => {
    const own = makeCertificate(folder, "own");
    const signed = makeCertificate(folder, "signed", makeCertificate(folder, "ca"));
    const misnamed = makeCertificate(folder, "misnamed", undefined, "DNS:keys.example.com");
    const expired = makeCertificate(folder, "expired");
    expireCertificate(expired);
    const trusted = { NODE_EXTRA_CA_CERTS: misnamed.certificate };
    const plain = await type(`apis list --url ${latchkey.baseUrl.replace("http:", "https:")}`);
    expect(plain.code).toBe(1);
    expect(plain.stderr).toContain("\nthe service speaks http, not https, there\n");
    const encrypted = await type(`apis list --url ${(await serveTls(own)).replace("https:", "http:")}`);
    expect(encrypted.code).toBe(3);
    expect(encrypted.stderr).toContain("\nit closed the connection: maybe it speaks https there\n");
    const cases: [Certificate, RegExp, Record<string, string>?][] = [
      [own, /\(DEPTH_ZERO_SELF_SIGNED_CERT\)\n.+NODE_EXTRA_CA_CERTS=/],
      [signed, /\(UNABLE_TO_VERIFY_LEAF_SIGNATURE\)\n.+NODE_EXTRA_CA_CERTS=/],
      [misnamed, /\(ERR_TLS_CERT_ALTNAME_INVALID\)\nits certificate is for another name/, trusted],
      [expired, /\(CERT_HAS_EXPIRED\)\nits certificate has expired/, { NODE_EXTRA_CA_CERTS: expired.certificate }],
    ];
    for (const [certificate, problem, environment] of cases) {
      const { code, stderr } = await type(`apis list --url ${await serveTls(certificate)}`, environment);
      expect({ code, stderr }).toMatchObject({ code: 1, stderr: expect.stringMatching(problem) });
    }
  });
});

async function serveTls({ certificate, key }: Certificate): Promise<string> {
  const server = https.createServer({ cert: readFileSync(certificate), key: readFileSync(key) });
  await once(server.listen(0, "127.0.0.1"), "listening");
  undos.push(() => server.close());
  return `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
