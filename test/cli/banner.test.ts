import { afterAll, describe, expect, it } from "vitest";
import { banner } from "../../src/cli/banner.ts";
import type { Machine } from "../../src/cli/reachable-url.ts";
import { thisMachine } from "../../src/cli/reachable-url.ts";
import { readSettings, type Settings } from "../../src/config/settings.ts";
import { Secret } from "../../src/domain/secret.ts";
import type { RunningServer } from "../../src/server/running-server.ts";
import { identityOf, makeCertificate } from "../support/make-certificate.ts";
import { tempFolder } from "../support/temp-folder.ts";

const machine: Machine = { ...thisMachine, addresses: () => ["10.0.0.5", "fd00::5"], hostname: () => "host-5" };
const server = { port: 8080, internalPort: 8081 } as RunningServer;
const folder = tempFolder(afterAll);

function printed(settings: Partial<Settings>, where: Machine = machine, generated?: Secret): string {
  const all = { ...readSettings({}, () => "").settings, ...settings };
  return banner(all, server, generated, false, where);
}

function coordinatorsLine(settings: Partial<Settings>, where?: Machine): string | undefined {
  const text = printed({ role: "coordinator", ...settings }, where);
  return /LATCHKEY_COORDINATORS=(\S+)/.exec(text)?.[1];
}

describe("the line that a coordinator prints for edges", () => {
  it.each(["0.0.0.0", "::"])("names an address that other machines can reach when it listens on %s", (internalHost) => {
    expect(coordinatorsLine({ internalHost })).toBe("10.0.0.5:8081");
    expect(coordinatorsLine({ internalHost }, { ...machine, addresses: () => [] })).toBe("host-5:8081");
    expect(coordinatorsLine({ internalHost }, { ...machine, addresses: () => ["fd00::5"] })).toBe("[fd00::5]:8081");
  });

  it("names the address that it listens on, and says if other machines cannot reach it", () => {
    expect(coordinatorsLine({ internalHost: "10.0.0.7" })).toBe("10.0.0.7:8081");
    expect(printed({ role: "coordinator", internalHost: "10.0.0.7" })).not.toContain("this machine");
    expect(printed({ role: "coordinator" })).toContain("LATCHKEY_COORDINATORS=127.0.0.1:8081 on edges on this machine");
  });

  it.each([
    ["IP:10.9.9.9,IP:10.0.0.5", "https://10.0.0.5:8081"],
    ["IP:FD00:0:0:0:0:0:0:5", "https://[fd00::5]:8081"],
    ["DNS:host-5,DNS:other.example", "https://host-5:8081"],
    ["DNS:*.example,DNS:coordinator-1.example", "https://coordinator-1.example:8081"],
  ])("names what a certificate for %s is valid for: %s", (names, expected) => {
    const internalTls = identityOf(makeCertificate(folder, "named", undefined, names));
    expect(coordinatorsLine({ internalHost: "0.0.0.0", internalTls })).toBe(expected);
  });
});

describe("the lines of a server", () => {
  it("name addresses that other machines can reach when it listens on all of them", () => {
    const text = printed({ host: "0.0.0.0", internalHost: "::" });
    expect(text).toContain("Connect on http://10.0.0.5:8080\n");
    expect(text).toContain("metrics on http://10.0.0.5:8081/metrics, ");
  });

  it("can be pasted where the port speaks TLS: they name what the certificate is valid for", () => {
    const tls = identityOf(makeCertificate(folder, "public", undefined, "DNS:host-5"));
    const text = printed({ host: "0.0.0.0", tls }, machine, new Secret("lk_root_shown"));
    expect(text).toContain("Connect on https://host-5:8080\n");
    expect(text).toContain("curl -s https://host-5:8080/v1/keys.verifyKey ");
    expect(text).toMatch(/buf curl --protocol grpc -d .* https:\/\/host-5:8080/);
  });
});
