import { execFile } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findReleaseProblems } from "../../tools/release-problems.ts";
import { describeContents } from "../../tools/sbom.ts";
import { bash } from "../support/documented-steps.ts";
import { root } from "../support/repository.ts";
import { tempFolder } from "../support/temp-folder.ts";

const exec = promisify(execFile);
const leftOut = new Set([".git", "node_modules", "dist", "data", "packed", "release", "profiles", "test", "bench"]);

/** A repository like this one, with everything committed, and with the packages of this one. */
async function copyRepository(): Promise<string> {
  const folder = tempFolder(afterAll);
  cpSync(root, folder, { recursive: true, filter: (path) => !leftOut.has(relative(root, path)) });
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
  await commitAll(folder);
  return folder;
}

/** A repository with nothing but what the versions are read from. */
async function repositoryWith(files: Partial<Record<keyof typeof agreeing, string>>): Promise<string> {
  const folder = tempFolder();
  mkdirSync(join(folder, "client"));
  for (const [name, text] of Object.entries({ ...agreeing, ...files })) writeFileSync(join(folder, name), text);
  // Clean without a commit, which takes longer.
  await bash(folder, "git init -q && echo '*' >> .git/info/exclude");
  return folder;
}

const agreeing = {
  "package.json": '{"name": "latchkey", "version": "1.2.3"}',
  "package-lock.json": '{"version": "1.2.3", "packages": {"": {"version": "1.2.3"}}}',
  "client/package.json": '{"name": "@latchkey/client", "version": "1.2.3"}',
  "CHANGELOG.md": "# Changelog\n\n## Unreleased\n\n## 1.2.3 - 2026-11-17\n\n- All of it.\n\n## 1.2.2 - 2026-11-01\n",
};

async function commitAll(folder: string): Promise<void> {
  const commit = "git -c user.name=test -c user.email=test@example.com commit -q -m all";
  await bash(folder, `git init -q && echo node_modules >> .git/info/exclude && git add -A && ${commit}`);
}

describe("a release", () => {
  const unused = "/nonexistent";
  let copies: readonly string[] = [];
  beforeAll(async () => {
    copies = [await copyRepository(), await copyRepository()];
  });

  it("has nothing against a clean tree with one version and a date", async () => {
    expect(findReleaseProblems(await repositoryWith({}), unused)).toEqual([]);
  });

  it.each([
    ["package-lock.json", '{"version": "1.2.2"}', ["package-lock.json says 1.2.2", "says no version"]],
    ["client/package.json", '{"version": "1.2.2"}', ["client/package.json says 1.2.2, package.json says 1.2.3"]],
    ["CHANGELOG.md", "## 1.2.2 - 2026-11-17\n", ["the topmost section of CHANGELOG.md says 1.2.2"]],
    ["CHANGELOG.md", "## 1.2.3\n", ['needs a date: "## 1.2.3 - YYYY-MM-DD"']],
    ["CHANGELOG.md", "## 1.2.3 - 2026-13-41\n", ["needs a date"]],
    ["CHANGELOG.md", "## Unreleased\n", ["CHANGELOG.md says no version", "needs a date"]],
    ["CHANGELOG.md", "## Unreleased\n\n- More.\n\n## 1.2.3 - 2026-11-17\n", ["has changes under Unreleased"]],
  ] as const)("is refused where %s is %j", async (file, text, problems) => {
    const found = findReleaseProblems(await repositoryWith({ [file]: text }), unused);
    expect(found).toEqual(problems.map((problem) => expect.stringContaining(problem)));
  });

  it("makes the same bytes wherever it is made, with checksums that hold and a list of all that is inside", async () => {
    const make = async (folder: string) => {
      const made = tempFolder();
      const script = 'const { makeRelease } = await import("./tools/release.ts"); await makeRelease(process.argv[1]);';
      await exec(process.execPath, ["--input-type=module", "-e", script, made], { cwd: folder });
      return made;
    };
    const [made, again] = (await Promise.all(copies.map(make))) as [string, string];
    const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
    const names = ["latchkey", "latchkey-client"].map((name) => `${name}-${version}`);
    const files = names.flatMap((name) => [`${name}.cdx.json`, `${name}.tgz`]);
    expect(readdirSync(made)).toEqual(["SHA256SUMS", ...files]);
    for (const name of readdirSync(made)) {
      expect(readFileSync(join(again, name)).equals(readFileSync(join(made, name))), name).toBe(true);
    }
    expect(await bash(made, "sha256sum -c SHA256SUMS")).toBe(files.map((name) => `${name}: OK\n`).join(""));
    writeFileSync(join(again, `latchkey-${version}.tgz`), "another");
    await expect(bash(again, "sha256sum -c SHA256SUMS")).rejects.toThrow("1 computed checksum did NOT match");

    const [program, client] = names.map((name) => JSON.parse(readFileSync(join(made, `${name}.cdx.json`), "utf8")));
    const licences = await bash(made, `tar -xzOf latchkey-${version}.tgz package/dist/THIRD-PARTY-LICENSES`);
    const told = [...licences.matchAll(/={80}\n\n(\S+) (\S+): (.*)\n/g)].map(([, ...facts]) => facts.join(" "));
    expect(program.components.map(factsOf).sort()).toEqual(told.sort());
    expect(told).toContainEqual(expect.stringMatching(/^pg \d/));
    const foreign = ["buf/validate/validate", "google/api/annotations", "google/api/http"];
    expect(client.components.map(({ name }: Component) => name)).toEqual(foreign.map((name) => `proto/${name}.proto`));
    for (const { bomFormat, specVersion, metadata } of [program, client]) {
      expect({ bomFormat, specVersion }).toEqual({ bomFormat: "CycloneDX", specVersion: "1.6" });
      expect(metadata.component.version).toBe(version);
    }
  });

  it("by `npm run release` is refused where files are changed or new, and says all that is wrong", async () => {
    const [folder = ""] = copies;
    writeFileSync(join(folder, "new.ts"), "");
    writeFileSync(join(folder, "client/package.json"), '{"version": "0.0.9"}');
    const args = [join(folder, "tools/release.ts"), "--no-tests", join(folder, "src")];
    const refusal = await exec(process.execPath, args, { cwd: folder }).catch((error) => error);
    expect(refusal).toMatchObject({ code: 1, stdout: "" });
    for (const problem of [
      "the tree is not clean, commit or remove: client/package.json, new.ts",
      "client/package.json says 0.0.9",
      `${join(folder, "src")} is not empty: remove it`,
    ])
      expect(refusal.stderr).toContain(problem);
  });
});

interface Component {
  readonly name: string;
  readonly version: string;
  readonly licenses: [{ expression?: string; license?: { id: string } }];
}

function factsOf({ name, version, licenses: [licence] }: Component): string {
  return `${name} ${version} ${licence.expression ?? licence.license?.id}`;
}

describe("the list of what is inside", () => {
  const contents = {
    name: "latchkey",
    version: "1.2.3",
    license: "Apache-2.0",
    type: "application",
    files: [],
  } as const;

  it("has each package with its address, its licence and the hash that package-lock.json has", () => {
    const bundled = ["src/cli/latchkey.ts", "node_modules/@bufbuild/protobuf/dist/esm/index.js"];
    const lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"));
    const { version, integrity } = lock.packages["node_modules/@bufbuild/protobuf"];
    const purl = `pkg:npm/%40bufbuild/protobuf@${version}`;
    const content = Buffer.from(integrity.slice("sha512-".length), "base64").toString("hex");
    expect(describeContents(root, { ...contents, bundled })).toMatchObject({
      components: [
        {
          type: "library",
          name: "@bufbuild/protobuf",
          purl,
          hashes: [{ alg: "SHA-512", content }],
          licenses: [{ expression: "(Apache-2.0 AND BSD-3-Clause)" }],
        },
      ],
      dependencies: [{ ref: "pkg:npm/latchkey@1.2.3", dependsOn: [purl] }],
    });
    expect(content).toHaveLength(128);
  });

  it("is refused for a package that is installed in another version than the locked one", () => {
    const folder = tempFolder();
    mkdirSync(join(folder, "node_modules/pg"), { recursive: true });
    const manifest = { name: "pg", version: "8.0.0", license: "MIT" };
    writeFileSync(join(folder, "node_modules/pg/package.json"), JSON.stringify(manifest));
    cpSync(join(root, "package-lock.json"), join(folder, "package-lock.json"));
    const describe = () => describeContents(folder, { ...contents, bundled: ["node_modules/pg/lib/index.js"] });
    expect(describe).toThrow("package-lock.json does not have pg 8.0.0");
  });
});
