import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { createLog } from "../../src/ambient/log.ts";
import { readSettings, type Settings } from "../../src/config/settings.ts";
import { LiveSettings } from "../../src/server/live-settings.ts";
import { Reload } from "../../src/server/reload.ts";
import { makeCertificate } from "../support/make-certificate.ts";
import { tempFolder } from "../support/temp-folder.ts";

const folder = tempFolder(afterAll);
const [first, second] = [makeCertificate(folder, "first"), makeCertificate(folder, "second")];
const rootKeys = ["root-key-one-0123456789-0123456789", "root-key-two-0123456789-0123456789"] as const;

/** A reload of settings in a file, with what it has handed on and logged. */
function setUp(text: string, environment: Record<string, string> = {}) {
  const files = tempFolder();
  const path = (name: string) => join(files, name);
  const write = (name: string, content: string) => writeFileSync(path(name), content);
  write("settings", text);
  copyFileSync(first.certificate, path("cert.pem"));
  copyFileSync(first.key, path("key.pem"));
  write("root-keys", rootKeys[0]);
  const full = { LATCHKEY_SETTINGS_FILE: path("settings"), ...environment };
  for (const [name, value] of Object.entries(full)) full[name as keyof typeof full] = value.replace("FILES", files);
  const live = new LiveSettings(readSettings(full, (file) => readFileSync(file, "utf8")).settings);
  const handedOn: Settings[] = [];
  live.follow((next) => void handedOn.push(next));
  const lines: string[] = [];
  const reload = new Reload({ environment: full, live, log: createLog("info", (line) => lines.push(line)) });
  onTestFinished(() => reload.stop());
  return { reload, live, handedOn, lines, write, path };
}

describe("a reload", () => {
  it("hands on what is new of live settings, and nothing where nothing is", async () => {
    const { reload, live, handedOn, lines, write } = setUp("LATCHKEY_CALLS_MAX=5\n# why\n\nLATCHKEY_DRAIN_MS='7'\n");
    expect(live.current).toMatchObject({ callsMax: 5, drainMs: 7 });
    expect(await reload.check()).toBe(false);
    write("settings", "LATCHKEY_CALLS_MAX=6\nLATCHKEY_LOG_LEVEL=debug\n");
    expect(await reload.check()).toBe(true);
    expect(handedOn).toEqual([expect.objectContaining({ callsMax: 6, logLevel: "debug", drainMs: 500 })]);
    expect(lines).toEqual([expect.stringMatching(/"LATCHKEY_CALLS_MAX, LATCHKEY_DRAIN_MS, LATCHKEY_LOG_LEVEL"/)]);
  });

  it("leaves everything as it was where anything is wrong, and says so once", async () => {
    const { reload, live, handedOn, lines, write } = setUp("LATCHKEY_CALLS_MAX=5");
    const before = live.current;
    write("settings", "LATCHKEY_CALLS_MAX=6\nLATCHKEY_DRAIN_MS=never\nnonsense\nLATCHKEY_TYPO=1");
    await reload.check();
    await reload.check();
    write("settings", "LATCHKEY_CALLS_MAX=6\nLATCHKEY_DRAIN_MS=never\n");
    await reload.check();
    expect([live.current, handedOn]).toEqual([before, []]);
    expect(lines).toEqual([
      expect.stringMatching(/line 3, must be NAME=value; .*line 4, has LATCHKEY_TYPO.*old ones stay/),
      expect.stringMatching(/LATCHKEY_DRAIN_MS must be a whole number.*old ones stay/),
    ]);
  });

  it("names what needs a restart, and takes over the rest", async () => {
    const { reload, handedOn, lines, write } = setUp("");
    write("settings", "PORT=1\nLATCHKEY_WORKERS=3\nLATCHKEY_CALLS_MAX=6");
    await reload.check();
    await reload.check();
    expect(handedOn).toEqual([expect.objectContaining({ port: 8080, workers: 1, callsMax: 6 })]);
    expect(lines.filter((line) => line.includes("need a restart"))).toEqual([
      expect.stringMatching(/"settings":"PORT, LATCHKEY_WORKERS"/),
    ]);
  });

  it("lets the environment win, also over the file of a secret", async () => {
    const own = { LATCHKEY_CALLS_MAX: "3", LATCHKEY_ROOT_KEY: rootKeys[0], LATCHKEY_DRAIN_MS: "" };
    const { reload, live, handedOn, write, path } = setUp("", own);
    write("settings", `LATCHKEY_CALLS_MAX=6\nLATCHKEY_ROOT_KEY_FILE=${path("nowhere")}`);
    expect(await reload.check()).toBe(false);
    expect([live.current.callsMax, handedOn]).toEqual([3, []]);
    write("settings", "LATCHKEY_DRAIN_MS=8");
    expect(await reload.check(), "an empty variable is not set").toBe(true);
    expect(live.current.drainMs).toBe(8);
  });

  it("never opens the internal port: what is new is judged together with what stays", async () => {
    const open = "LATCHKEY_INTERNAL_HOST=0.0.0.0\nLATCHKEY_INTERNAL_PRIVATE=1\n";
    const { reload, live, handedOn, lines, write, path } = setUp(`${open}LATCHKEY_INTERNAL_SECRET=${rootKeys[0]}\n`);
    // From the secret to client certificates: valid at a start, and a mix without TLS until then.
    const files = `LATCHKEY_INTERNAL_TLS_CERT=${path("cert.pem")}\nLATCHKEY_INTERNAL_TLS_KEY=${path("key.pem")}\n`;
    write("settings", `${open}${files}LATCHKEY_INTERNAL_CLIENT_CA_FILE=${path("cert.pem")}\nLATCHKEY_CALLS_MAX=6\n`);
    expect(await reload.check()).toBe(false);
    expect([live.current.internalSecrets.length, handedOn]).toEqual([1, []]);
    expect(lines.join()).toMatch(/LATCHKEY_INTERNAL_CLIENT_CA must not be set.*the old ones stay/);
    // On loopback no rule asks for a secret, and still only a start removes the last proof.
    const onLoopback = setUp(`LATCHKEY_INTERNAL_SECRET=${rootKeys[0]}\n`);
    onLoopback.write("settings", "LATCHKEY_CALLS_MAX=6\n");
    expect(await onLoopback.reload.check()).toBe(true);
    expect(onLoopback.live.current).toMatchObject({ callsMax: 6, internalSecrets: [expect.anything()] });
    expect(onLoopback.lines.join()).toMatch(/need a restart/);
  });

  it("takes an emptied file for one that is being written", async () => {
    const { reload, live, lines, write } = setUp("LATCHKEY_CALLS_MAX=6\n");
    write("settings", "");
    expect(await reload.check()).toBe(false);
    expect(live.current.callsMax).toBe(6);
    expect(lines.join()).toMatch(/names a file that is empty/);
  });

  it("is tried again where a part could not take it over", async () => {
    const { reload, live, lines, write } = setUp("");
    let isBroken = true;
    live.follow(() => {
      if (isBroken) throw new Error("not now");
    });
    let heard = 0;
    live.follow(() => void heard++);
    write("settings", "LATCHKEY_CALLS_MAX=6");
    expect([await reload.check(), heard]).toEqual([false, 1]);
    expect(lines.join()).toMatch(/could not be taken over/);
    isBroken = false;
    expect([await reload.check(), live.current.callsMax]).toEqual([true, 6]);
  });

  it("takes over a certificate when its key is there too", async () => {
    const tls = { LATCHKEY_TLS_CERT: "FILES/cert.pem", LATCHKEY_TLS_KEY: "FILES/key.pem" };
    const { reload, live, lines, path } = setUp("", tls);
    copyFileSync(second.certificate, path("cert.pem"));
    expect(await reload.check()).toBe(false);
    expect(live.current.tls?.certificate.subject).toBe("CN=first");
    copyFileSync(second.key, path("key.pem"));
    expect(await reload.check()).toBe(true);
    expect(live.current.tls?.certificate.subject).toBe("CN=second");
    expect(lines[0]).toMatch(/LATCHKEY_TLS_KEY must name the private key/);
  });

  it("takes over root keys of a file, but not an empty one", async () => {
    const { reload, live, lines, write } = setUp("", { LATCHKEY_ROOT_KEY_FILE: "FILES/root-keys" });
    const shown = () => live.current.rootKeys.map((key) => key.reveal());
    write("root-keys", "");
    await reload.check();
    expect(shown()).toEqual([rootKeys[0]]);
    write("root-keys", rootKeys.join(","));
    expect(await reload.check()).toBe(true);
    expect(shown()).toEqual(rootKeys);
    expect(lines.join()).not.toContain(rootKeys[1]);
  });

  it("happens by itself within ten seconds", async () => {
    vi.useFakeTimers({ toFake: ["setInterval"] });
    onTestFinished(() => void vi.useRealTimers());
    const { live, write } = setUp("");
    write("settings", "LATCHKEY_CALLS_MAX=6");
    vi.advanceTimersByTime(10_000);
    await vi.waitFor(() => expect(live.current.callsMax).toBe(6));
  });
});
