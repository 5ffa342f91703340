import { execFile } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it, type TestContext } from "vitest";
import { goProgram, mavenJar, pythonPackages } from "../support/cached-programs.ts";
import { startTestServer } from "../support/in-process-server.ts";
import { npmPackage } from "../support/npm-programs.ts";
import { root } from "../support/repository.ts";
import { tempFolder } from "../support/temp-folder.ts";
import * as programs from "./generated-client-programs.ts";

const document = join(root, "gen/openapi.json");
/** What each program prints: of a key for two uses, renamed, after one verification. */
const expected = "renamed true VALID 1";

/** Skips the test if what it needs cannot be had, such as without a network. Nothing that can fail otherwise belongs in here. */
async function orSkip<T>(context: TestContext, find: () => T | Promise<T>): Promise<T> {
  try {
    return await find();
  } catch (error) {
    const [reason] = String((error as Error).message).split("\n");
    return context.skip(`cannot be had: ${reason}`);
  }
}

/** Not the synchronous one: the server is in this process. */
async function run(cwd: string, command: string, args: readonly string[], env: object = {}): Promise<string> {
  const options = { cwd, env: { ...process.env, ...env }, maxBuffer: 2 ** 26 };
  return (await promisify(execFile)(command, args, options)).stdout.trim();
}

const generator = () => mavenJar("org.openapitools:openapi-generator-cli:7.25.0");
const packages = () => pythonPackages("schemathesis==4.32.5", "python-dateutil==2.9.0.post0", "urllib3==2.7.0");

async function pythonEnvironment(context: TestContext): Promise<{ PYTHONPATH: string }> {
  await orSkip(context, () => run(root, "python3", ["--version"]));
  return { PYTHONPATH: await orSkip(context, packages) };
}

async function generate(context: TestContext, language: string): Promise<string> {
  const folder = tempFolder();
  const jar = await orSkip(context, generator);
  await orSkip(context, () => run(folder, "java", ["-version"]));
  await run(folder, "java", ["-jar", jar, "generate", "-i", document, "-g", language, "-o", folder]);
  return folder;
}

// With the default options of each generator.
describe("a client that is generated from the OpenAPI document creates, updates and verifies a key", () => {
  it("in Java, by openapi-generator", async (context) => {
    const folder = await generate(context, "java");
    writeFileSync(join(folder, "Main.java"), programs.java);
    const quietly = ["-q", "-B", "-DskipTests"];
    await orSkip(context, () => run(folder, "mvn", [...quietly, "dependency:go-offline"]));
    await run(folder, "mvn", [...quietly, "compile", "dependency:build-classpath", "-Dmdep.outputFile=classpath"]);
    const { baseUrl, rootKey } = await startTestServer();
    const classes = `target/classes:${readFileSync(join(folder, "classpath"), "utf8")}`;
    expect(await run(folder, "java", ["-cp", classes, "Main.java", baseUrl, rootKey])).toBe(expected);
  });

  it("in Python, by openapi-generator", async (context) => {
    const env = await pythonEnvironment(context);
    const folder = await generate(context, "python");
    const { baseUrl, rootKey } = await startTestServer();
    expect(await run(folder, "python3", ["-c", programs.python, baseUrl, rootKey], env)).toBe(expected);
  });

  it("in Go, by oapi-codegen", async (context) => {
    const module = "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2";
    const oapiCodegen = await orSkip(context, () => goProgram(module, "oapi-codegen"));
    const folder = tempFolder();
    mkdirSync(join(folder, "latchkey"));
    const options = ["-generate", "types,client", "-package", "latchkey", "-o", "latchkey/client.go"];
    await run(folder, oapiCodegen, [...options, document]);
    writeFileSync(join(folder, "main.go"), programs.go);
    writeFileSync(join(folder, "go.mod"), programs.goModule);
    await orSkip(context, () => run(folder, "go", ["list", "-mod=mod", "-deps", "github.com/oapi-codegen/runtime"]));
    await run(folder, "go", ["build", "-mod=mod", "-o", "app", "."]);
    const { baseUrl, rootKey } = await startTestServer();
    expect(await run(folder, "./app", [baseUrl, rootKey])).toBe(expected);
  });

  it("in TypeScript, by openapi-typescript and openapi-fetch", async (context) => {
    const folder = tempFolder();
    const find = () => [npmPackage("openapi-typescript", "7.13.0"), npmPackage("openapi-fetch", "0.17.0")] as const;
    const [forTypes, forCalls] = await orSkip(context, find);
    await run(folder, join(forTypes, ".bin/openapi-typescript"), [document, "-o", "api.d.ts"]);
    cpSync(forCalls, join(folder, "node_modules"), { recursive: true });
    writeFileSync(join(folder, "main.mts"), programs.typescript);
    const checks = ["--noEmit", "--strict", "--module", "nodenext", "--types", "", "--lib", "es2022,dom", "main.mts"];
    await run(folder, join(root, "node_modules/.bin/tsc"), checks);
    const { baseUrl, rootKey } = await startTestServer();
    expect(await run(folder, process.execPath, ["main.mts", baseUrl, rootKey])).toBe(expected);
  });
});

describe("the OpenAPI document", () => {
  it("says what the service answers, as schemathesis finds by calling every method", async (context) => {
    const env = await pythonEnvironment(context);
    const { baseUrl, rootKey } = await startTestServer();
    const options = [
      ...["--url", baseUrl, "--header", `Authorization: Bearer ${rootKey}`],
      ...["--seed", "1", "--max-examples", "5", "--phases", "examples,coverage,fuzzing"],
      ...["--generation-database", "none", "--no-color"],
      // The document cannot say everything that is refused, such as a cursor of another list; and after some wrong root keys the
      // answer is 429 instead of 401. Proxies ask /v1/authz with any HTTP method.
      ...["--exclude-checks", "positive_data_acceptance,ignored_auth,unsupported_method"],
    ];
    const called = run(tempFolder(), "python3", ["-m", "schemathesis.cli", "run", document, ...options], env);
    await expect(called).resolves.toMatch(/Tested: \d\d/);
  });
});
