import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { builtProgram } from "../support/artefact.ts";
import { bash } from "../support/documented-steps.ts";
import { freePort } from "../support/local-server.ts";
import { atTestEnd } from "../support/test-end.ts";
import type { Block } from "./blocks.ts";
import { differences } from "./same-answer.ts";

const exec = promisify(execFile);
const documentedUrl = "http://127.0.0.1:8080";

/** Languages whose blocks are run, or compared with what was printed before them. */
export const runLanguages = ["sh", "ts", "js", "json"];

/** What stands around a piece of a program. Each piece is known by a part of it. */
const around: readonly { readonly part: string; readonly before: string; readonly after?: string }[] = [
  {
    part: 'app.get("/forecast"',
    before:
      'import express from "express"; const app = express(); const listArchive = (_, response) => response.json([]);',
    after: `
      const server = app.listen(0, "127.0.0.1", async () => {
        const { status } = await fetch(\`http://127.0.0.1:\${server.address().port}/forecast\`);
        console.log(status);
        process.exit(status === 401 ? 0 : 1);
      });`,
  },
  {
    part: "forecast.read",
    before: 'const key = "nonsense";',
    after: "if (valid !== false || degraded) process.exit(1);",
  },
  { part: "loadPackageDefinition", before: "", after: "setTimeout(() => process.exit(), 500);" },
  { part: "listKeys({ ownerId", before: own("latchkey") },
  { part: "LATCHKEY_ROOT_KEY", before: 'import { createClient } from "@latchkey/client";' },
];

function own(name: string): string {
  const options = `{ baseUrl: "${documentedUrl}", rootKey: process.env.LATCHKEY_ROOT_KEY }`;
  return `import { createClient } from "@latchkey/client"; const ${name} = createClient(${options});`;
}

/** The command, as it is typed. */
const defineLatchkey = `latchkey() { '${process.execPath}' '${builtProgram()}' "$@"; }`;

/** A program that a page has readers write into a file, by the comment in its first line. */
const file = /^\/\/ ([\w-]+\.mjs)\n/;
/** A command that goes on until it is stopped: in a terminal of its own. */
const server = /^node [\w-]+\.mjs$/;

/** Somebody who follows a page block by block, in one folder, with one service. */
export class Reader {
  readonly #folder: string;
  readonly #rootKey: string;
  /** What stands in the page, and what it is this time. */
  readonly #learnt: Map<string, string>;
  #printed = "";

  private constructor(folder: string, rootKey: string, learnt: Map<string, string>) {
    this.#folder = folder;
    this.#rootKey = rootKey;
    this.#learnt = learnt;
  }

  static async begin(
    folder: string,
    { baseUrl, rootKey }: { readonly baseUrl: string; readonly rootKey: string },
  ): Promise<Reader> {
    const port = await freePort();
    const learnt = new Map([
      [documentedUrl, baseUrl],
      [new URL(documentedUrl).host, new URL(baseUrl).host],
      ["127.0.0.1:3000", `127.0.0.1:${port}`],
      ["listen(3000", `listen(${port}`],
    ]);
    return new Reader(folder, rootKey, learnt);
  }

  /** The text with this run's addresses, ids and secrets. */
  #here(text: string): string {
    return [...this.#learnt].reduce((done, [from, to]) => done.replaceAll(from, to), text);
  }

  /** Runs the block, or compares it with what was printed last. Answers what is wrong. */
  async follow(block: Block, next: Block | undefined): Promise<string[]> {
    try {
      if (server.test(block.text.trim())) return await this.#start(block);
      if (block.language === "sh") return await this.#type(block, next);
      if (block.language !== "json") return await this.#run(block);
      return differences(parse(block.text) ?? "no JSON", parse(this.#printed), (from, to) =>
        this.#learnt.set(from, to),
      );
    } catch (error) {
      return [(error as Error).message];
    }
  }

  async #type({ text }: Block, next: Block | undefined): Promise<string[]> {
    for (const command of text.trim().split(/\n(?=\S)(?!done|fi)/)) {
      const env = { HOME: this.#folder, LATCHKEY_ROOT_KEY: this.#rootKey, LATCHKEY_URL: this.#here(documentedUrl) };
      this.#printed = await bash(this.#folder, `${defineLatchkey}\n${this.#here(command)}`, { env });
      const { error, key } = Object(parse(this.#printed)) as { error?: { message: string }; key?: string };
      if (error && !next?.text.includes('"error"')) return [`${command}: ${error.message}`];
      if (typeof key === "string") this.#learnt.set('"key":"…"', `"key":"${key}"`);
    }
    return [];
  }

  async #start({ text }: Block): Promise<string[]> {
    const child = spawn("bash", ["-ec", `exec ${text}`], { cwd: this.#folder });
    atTestEnd(() => void child.kill("SIGKILL"));
    const ended = once(child, "exit").then(([code]) => [`${text.trim()} ended with ${code}`]);
    return Promise.race([once(child.stdout, "data").then(() => []), ended]);
  }

  async #run({ language, text }: Block): Promise<string[]> {
    const [, name] = file.exec(text) ?? [];
    if (name !== undefined) {
      writeFileSync(join(this.#folder, name), this.#here(text));
      return [];
    }
    const piece = around.find(({ part }) => text.includes(part));
    const script = join(this.#folder, language === "ts" ? "piece.mts" : "piece.mjs");
    writeFileSync(script, this.#here(`${piece?.before ?? ""}\n${text}\n${piece?.after ?? ""}`));
    const env = { ...process.env, LATCHKEY_ROOT_KEY: this.#rootKey };
    this.#printed = (await exec(process.execPath, [script], { cwd: this.#folder, env })).stdout;
    return [];
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
