import { readFileSync, writeFileSync } from "node:fs";
import type { Figure, Findings, Goal, Section } from "./section.ts";

/** The result of one section: findings, or why there are none. */
export interface Outcome {
  readonly section: Section;
  readonly findings: Findings<string> | Error;
}

const begin = "<!-- npm run bench: everything between these two lines is written by it -->";
const end = "<!-- /npm run bench -->";

/** A section's tables. */
export function describeSection({ section, findings }: Outcome): string {
  const text = findings instanceof Error ? [`Failed: ${findings.message.split("\n")[0]}`] : findings.text;
  return [`### ${section.title}`, section.how, ...text].join("\n\n");
}

/** All goals of the sections in one table, each beside what was measured. */
export function describeGoals(outcomes: readonly Outcome[]): string {
  const lines = outcomes.flatMap(({ section, findings }) => {
    const titled = (line: string) => `| ${section.title}: ${line.slice(2)}`;
    if (findings instanceof Error) return [titled("| all | not measured | | failed |")];
    return goalLines(section, findings).map(titled);
  });
  return ["| figure | measured | target | |", "|---|---|---|---|", ...lines].join("\n");
}

export function writeIntoPage(path: string, generated: string): void {
  const page = readFileSync(path, "utf8");
  const [before, after] = [page.indexOf(begin), page.indexOf(end)];
  if (before < 0 || after < before) throw new Error(`${path} has lost the lines that results go between`);
  writeFileSync(path, `${page.slice(0, before)}${begin}\n\n${generated}\n\n${page.slice(after)}`);
}

function goalLines(section: Section, { figures }: Findings<string>): string[] {
  return Object.entries(section.goals).map(([name, goal]) => goalLine(goal, figures[name] ?? "missing"));
}

function goalLine(goal: Goal, figure: Figure): string {
  const { what, atLeast, atMost } = goal;
  const target = atLeast !== undefined ? `≥ ${atLeast}` : atMost !== undefined ? `≤ ${atMost}` : undefined;
  const measured = typeof figure === "number" ? inUnit(goal, toText(figure)) : figure;
  return `| ${what} | ${measured} | ${target === undefined ? "" : inUnit(goal, target)} | ${verdict(goal, figure)} |`;
}

function verdict({ atLeast, atMost }: Goal, figure: Figure): string {
  if (atLeast === undefined && atMost === undefined) return "stated";
  if (typeof figure === "string") return "open";
  return figure >= (atLeast ?? Number.NEGATIVE_INFINITY) && figure <= (atMost ?? Number.POSITIVE_INFINITY)
    ? "met"
    : "short";
}

function inUnit({ unit }: Goal, text: string): string {
  return unit === "" ? text : `${text} ${unit}`;
}

function toText(figure: number): string {
  return figure >= 100 ? `${Math.round(figure)}` : figure >= 10 ? figure.toFixed(1) : figure.toFixed(2);
}
