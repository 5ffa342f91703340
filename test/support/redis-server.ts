import { once } from "node:events";
import net from "node:net";
import { LocalServer } from "./local-server.ts";
import { redisBinary } from "./redis-binary.ts";

const answerMs = 5000;

/** A real Redis of the test's own, which keeps nothing on disk. */
export class RedisServer extends LocalServer {
  readonly #settings: Record<string, string>;

  private constructor(settings: Record<string, string>) {
    super("redis");
    this.#settings = settings;
  }

  /** A new server, running. `settings` are those of its configuration file. */
  static async start(settings: Record<string, string> = {}): Promise<RedisServer> {
    const server = new RedisServer(settings);
    await server.restart();
    return server;
  }

  url(database = 0): string {
    return `redis://127.0.0.1:${this.port}/${database}`;
  }

  /** Starts the server again, with what was saved on disk, after killing it if it runs: without settings that is nothing. */
  async restart(): Promise<void> {
    await this.kill();
    const prepare = () => {
      const settings = {
        bind: "127.0.0.1",
        port: String(this.port),
        "protected-mode": "yes",
        dir: this.folder,
        save: "",
        appendonly: "no",
        ...this.#settings,
      };
      return Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);
    };
    await this.launch(redisBinary(), prepare, () => this.command("PING"), "redis-server");
  }

  /** Sends one command and answers the reply as it is. */
  command(line: string): Promise<string> {
    return redisCommand(this.port, line);
  }

  /** Removes every key of every database. */
  async flush(): Promise<void> {
    const reply = await this.command("FLUSHALL");
    if (reply !== "+OK\r\n") throw new Error(`Redis did not flush: ${reply}`);
  }
}

/** Sends one command on a connection of its own and answers the reply as it is. */
export async function redisCommand(port: number, line: string): Promise<string> {
  const socket = net.connect({ host: "127.0.0.1", port });
  try {
    socket.write(`${line}\r\n`);
    const [reply] = await once(socket, "data", { signal: AbortSignal.timeout(answerMs) });
    return String(reply);
  } finally {
    socket.on("error", () => {}).destroy();
  }
}
