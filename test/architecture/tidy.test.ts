import { describe, expect, it } from "vitest";
import { type Variable, variables } from "../../src/config/variables.ts";
import { readText, readTree } from "../support/repository.ts";

const linesMax = 320;
const sources = new Map([...readTree("src", ".ts"), ...readTree("tools", ".ts")]);
const everything = new Map([...sources, ...readTree("test", ".ts")]);

describe("the source", () => {
  it("has files that can be read in one sitting", () => {
    const long = [...everything].filter(([, text]) => text.split("\n").length > linesMax);
    expect(long.map(([file]) => file)).toEqual([]);
  });

  it("has no drawer for everything", () => {
    const drawers = [...everything.keys()].filter((file) => /(^|\/)(utils?|common|helpers?|misc)(\/|\.ts)/.test(file));
    expect(drawers).toEqual([]);
  });

  it("names its files in kebab-case", () => {
    expect([...everything.keys()].filter((file) => !/^[a-z0-9/.-]+$/.test(file))).toEqual([]);
  });

  it("takes time and chance from ambient only", () => {
    const reaches = /\bDate\.now\b|\bnew Date\(\)|\bMath\.random\b|\bperformance\.now\b|\brandomBytes\b|\brandomUUID\b/;
    const offenders = [...readTree("src", ".ts")].filter(
      ([file, text]) => !file.startsWith("src/ambient/") && !isOfCallers(file) && reaches.test(text),
    );
    expect(offenders.map(([file]) => file)).toEqual([]);
  });

  it("prints through the log, and to the console only from the command line", () => {
    const writesLog = "src/ambient/log-output.ts";
    const offenders = [...readTree("src", ".ts")].filter(
      ([file, text]) =>
        !file.startsWith("src/cli/") &&
        file !== writesLog &&
        !isOfCallers(file) &&
        /\bconsole\.|process\.std(out|err)/.test(text),
    );
    expect(offenders.map(([file]) => file)).toEqual([]);
  });
});

/** The client runs in other people's programs, and has what these have. */
function isOfCallers(file: string): boolean {
  return file.startsWith("src/sdk/");
}

describe("the documentation", () => {
  const pages = new Map([
    ...readTree("docs", ".md"),
    ...["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"].map((file) => [file, readText(file)] as const),
  ]);

  it("lists exactly the settings that are read", () => {
    const listed = [...readText("docs/configuration.md").matchAll(/^\| `([A-Z_]+)` \| ([^|]*) \|/gm)];
    const documented = Object.fromEntries(
      listed.map(([, name, fallback]) => [name, fallback?.replaceAll("`", "").trim()]),
    );
    const all: readonly Variable<unknown>[] = Object.values(variables);
    const read = all.map(({ name, fallback }) => [name, fallback || "none"]);
    expect(documented).toEqual(Object.fromEntries(read));
  });

  it("marks exactly the settings that a running process takes over", () => {
    const rows = [...readText("docs/configuration.md").matchAll(/^\| `([A-Z_]+)` \| .*$/gm)];
    const marked = rows.filter(([row]) => /\*Live\b/.test(row)).map(([, name]) => name);
    const live = Object.values(variables).flatMap((variable) => ("live" in variable ? variable.name : []));
    expect(marked.sort()).toEqual(live.sort());
  });

  it("gives a reason for every dependency", () => {
    const manifests = ["package.json", "bench/peers/package.json"].map((file) => JSON.parse(readText(file)));
    const used = manifests
      .flatMap(({ dependencies, devDependencies }) => Object.keys({ ...dependencies, ...devDependencies }))
      .sort();
    const explained = [...readText("docs/dependencies.md").matchAll(/^\| `([^`]+)` \|/gm)].map((match) => match[1]);
    expect(explained.sort()).toEqual(used);
  });

  it("points only to files that exist", () => {
    const broken = [...pages].flatMap(([page, text]) =>
      [...text.matchAll(/\]\((?!https?:|#)([^)#]+)/g)]
        .map((match) => new URL(match[1] ?? "", `file:///${page}`).pathname.slice(1))
        .filter((target) => !exists(target))
        .map((target) => `${page} → ${target}`),
    );
    expect(broken).toEqual([]);
  });

  it("points only to headings that exist", () => {
    expect(findLostHeadings(pages)).toEqual([]);
  });

  it("would be caught pointing to a heading that has another name now", () => {
    const renamed = readText("docs/architecture.md").replace("## The picture", "## Pictures");
    expect(findLostHeadings(new Map([...pages, ["docs/architecture.md", renamed]]))).toContain(
      "docs/glossary.md → docs/architecture.md#the-picture",
    );
  });

  it("names only files that exist where it shows promises", () => {
    const page = readText("docs/promises.md");
    expect(findLostPaths(page)).toEqual([]);
    const renamed = "domain/deadlines.ts";
    expect(findLostPaths(page.replace(renamed, "domain/dead-lines.ts"))).toEqual(["src/domain/dead-lines.ts"]);
  });
});

function findLostHeadings(texts: ReadonlyMap<string, string>): string[] {
  return [...texts].flatMap(([page, text]) =>
    [...text.matchAll(/\]\((?!https?:)([^)#]*)#([^)]+)\)/g)].flatMap(([, path = "", heading = ""]) => {
      const target = path === "" ? page : new URL(path, `file:///${page}`).pathname.slice(1);
      const isLost = target.endsWith(".md") && !headingsOf(texts.get(target) ?? readText(target)).includes(heading);
      return isLost ? `${page} → ${target}#${heading}` : [];
    }),
  );
}

/** Of the paths in backticks. Those of sources are written without `src`. */
function findLostPaths(page: string): string[] {
  return [...page.matchAll(/`([\w-]+\/[\w./-]*(?:\/|\.ts))`/g)]
    .map(([, path = ""]) => (/^(test|docs)\//.test(path) ? path : `src/${path}`))
    .filter((path) => !exists(path));
}

/** As GitHub names them in links. */
function headingsOf(page: string): string[] {
  const withoutBlocks = page.replaceAll(/^( *)```.*?^\1```/gms, "");
  return [...withoutBlocks.matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
      .replaceAll(" ", "-"),
  );
}

function exists(path: string): boolean {
  try {
    readText(path);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EISDIR";
  }
}
