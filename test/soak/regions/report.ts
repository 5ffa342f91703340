/** One line of what a run found: a figure beside what is asked of it. */
export interface Finding {
  readonly scenario: string;
  readonly figure: string;
  readonly asked: string;
  readonly measured: string;
  readonly holds: boolean;
}

/** Collects what one scenario finds. */
export class Report {
  readonly findings: Finding[] = [];
  readonly #scenario: string;
  readonly #say: (line: string) => void;

  /** Every finding is said at once, for those who watch a long run. */
  constructor(scenario: string, say: (line: string) => void = () => {}) {
    this.#scenario = scenario;
    this.#say = say;
  }

  /** A number that must be at most so large. */
  atMost(figure: string, measured: number, max: number, unit = ""): void {
    const asked = max === 0 ? "0" : `≤ ${max}${unit}`;
    this.#add(figure, asked, `${rounded(measured)}${measured === 0 ? "" : unit}`, measured <= max);
  }

  /** So many of so many. */
  allOf(figure: string, measured: number, all: number): void {
    this.#add(figure, "all, and some", `${measured} of ${all}`, measured === all && all > 0);
  }

  /** A list of problems, which must be empty. */
  none(figure: string, problems: readonly string[]): void {
    const [first = "none"] = problems;
    this.#add(
      figure,
      "none",
      problems.length > 1 ? `${first}; and ${problems.length - 1} more` : first,
      problems.length === 0,
    );
  }

  /** Nothing is asked of it, but it helps to read the others. */
  note(figure: string, measured: string): void {
    this.#add(figure, "", measured, true);
  }

  /** The scenario could not be carried out. */
  failed(reason: string): void {
    this.#add("carried out", "yes", reason, false);
  }

  get missed(): Finding[] {
    return this.findings.filter(({ holds }) => !holds);
  }

  #add(figure: string, asked: string, measured: string, holds: boolean): void {
    const finding = { scenario: this.#scenario, figure, asked, measured, holds };
    this.findings.push(finding);
    this.#say(`${holds ? "    " : "MISS"}  ${this.#scenario}: ${figure}: ${measured}${asked && ` (asked: ${asked})`}`);
  }
}

/** As a table of Markdown. */
export function tableOf(findings: readonly Finding[]): string {
  const rows = findings.map(({ scenario, figure, asked, measured, holds }) => {
    return `| ${scenario} | ${figure} | ${asked} | ${measured} | ${asked === "" ? "" : holds ? "yes" : "**no**"} |`;
  });
  return ["| scenario | figure | asked | measured | holds |", "|---|---|---|---|---|", ...rows].join("\n");
}

function rounded(value: number): string {
  return String(Number.isInteger(value) ? value : Number(value.toFixed(value < 10 ? 2 : 0)));
}
