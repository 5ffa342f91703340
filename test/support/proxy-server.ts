import { writeFileSync } from "node:fs";
import net from "node:net";
import { join } from "node:path";
import type { MaybePromise } from "../../src/domain/maybe-promise.ts";
import { readConfiguration, substitute } from "./documented-configuration.ts";
import { freePort, LocalServer } from "./local-server.ts";
import type { ProxyName } from "./proxy-binaries.ts";
import { root } from "./repository.ts";

/** What the documented configuration is changed to. `address` is a host and a port. */
export interface ProxyOptions {
  /** Addresses of the two replicas of Latchkey. */
  readonly latchkey: readonly [string, string];
  readonly api: string;
  /** What the proxy sends to Latchkey, for verifications that need one. */
  readonly rootKey: string;
  /** For controls: a piece of the configuration, and what takes its place. */
  readonly edit?: readonly [documented: string, broken: string] | undefined;
}

interface Kind {
  readonly page: string;
  readonly language: string;
  /** The documented address that the proxy listens on, and the one that it has here. */
  readonly listens: readonly [documented: string, local: (port: number) => string];
  /** Writes what the program needs around the documented configuration, and says how it is called. */
  prepare(folder: string, documented: string): MaybePromise<{ readonly args: readonly string[] }>;
}

const kinds: Readonly<Record<ProxyName, Kind>> = {
  nginx: {
    page: "docs/nginx.md",
    language: "nginx",
    listens: ["10.0.0.5:80", (port) => `127.0.0.1:${port}`],
    prepare(folder, documented) {
      writeFileSync(join(folder, "api.conf"), documented);
      const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
      const lines = [
        "daemon off;",
        `pid ${folder}/nginx.pid;`,
        "error_log stderr;",
        "events {}",
        "http {",
        "access_log off;",
        ...temporary.map((name) => `${name}_temp_path ${folder}/${name};`),
        `include ${folder}/api.conf;`,
        "}",
      ];
      writeFileSync(join(folder, "nginx.conf"), lines.join("\n"));
      return { args: ["-p", folder, "-e", "stderr", "-c", join(folder, "nginx.conf")] };
    },
  },
  caddy: {
    page: "docs/caddy.md",
    language: "caddyfile",
    listens: ["api.example.com", (port) => `http://127.0.0.1:${port}`],
    prepare(folder, documented) {
      const options = `{\n\tadmin off\n\tstorage file_system ${folder}\n}\n`;
      writeFileSync(join(folder, "Caddyfile"), options + documented);
      return { args: ["run", "--adapter", "caddyfile", "--config", join(folder, "Caddyfile")] };
    },
  },
  haproxy: {
    page: "docs/haproxy.md",
    language: "haproxy",
    listens: ["10.0.0.5:80", (port) => `127.0.0.1:${port}`],
    async prepare(folder, documented) {
      const places = {
        "127.0.0.1:8079": `127.0.0.1:${await freePort()}`,
        "/etc/haproxy/latchkey.lua": join(root, "deploy/haproxy/latchkey.lua"),
      };
      writeFileSync(join(folder, "haproxy.cfg"), substitute(documented, places));
      return { args: ["-db", "-f", join(folder, "haproxy.cfg")] };
    },
  },
};

/** A real proxy with the configuration of the documentation. */
export class ProxyServer extends LocalServer {
  /** The command starts the program; the arguments for its configuration are added. */
  static async start(
    name: ProxyName,
    [program, ...programArgs]: readonly [string, ...string[]],
    { latchkey, api, rootKey, edit }: ProxyOptions,
  ): Promise<ProxyServer> {
    const { page, language, listens, prepare } = kinds[name];
    const proxy = new ProxyServer(name);
    const writeAll = async () => {
      const documented = substitute(readConfiguration(page, language), {
        "10.0.0.1:8080": latchkey[0],
        "10.0.0.2:8080": latchkey[1],
        "10.0.0.9:3000": api,
        [listens[0]]: listens[1](proxy.port),
        latchkey_root_key: rootKey,
      });
      const { args } = await prepare(
        proxy.folder,
        edit === undefined ? documented : substitute(documented, { [edit[0]]: edit[1] }),
      );
      return [...programArgs, ...args];
    };
    await proxy.launch(program, writeAll, () => connectTo(proxy.port));
    return proxy;
  }

  get baseUrl(): string {
    return `http://127.0.0.1:${this.port}`;
  }
}

function connectTo(port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = net.connect(port, "127.0.0.1", () => {
      socket.destroy();
      resolve();
    });
    socket.on("error", reject);
  });
}
