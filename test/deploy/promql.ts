/** What an expression of PromQL asks for. */
export interface Asked {
  /** Metrics, each with the labels that its selector names and the values it compares them with. */
  readonly selectors: readonly Selector[];
  /** Labels of `by`, `without`, `on`, `ignoring`, `group_left` and `group_right`. */
  readonly groupedBy: readonly string[];
}

export interface Selector {
  readonly metric: string;
  readonly matchers: readonly { readonly label: string; readonly operator: string; readonly value: string }[];
}

const token = /\s+|#.*|"(?:[^"\\]|\\.)*"|[a-zA-Z_:][\w:]*|\d[\w.]*|[=!]~|[=!<>]=|[-+*/%^(){}[\],=<>:@]/y;
const operators = new Set(["and", "or", "unless", "bool", "offset", "atan2", "inf", "nan"]);
const listed = new Set(["by", "without", "on", "ignoring", "group_left", "group_right"]);

/** Reads an expression that promtool has accepted. Throws at what it does not know. */
export function readExpression(expression: string): Asked {
  const tokens = tokensOf(expression);
  const selectors: Selector[] = [];
  const groupedBy: string[] = [];
  for (let i = 0; i < tokens.length; i++) {
    const [name, next] = [tokens[i] as string, tokens[i + 1]];
    if (!/^[a-zA-Z_:]/.test(name) || operators.has(name.toLowerCase())) continue;
    if (listed.has(name)) {
      const end = tokens.indexOf(")", i);
      if (next === "(") groupedBy.push(...tokens.slice(i + 2, end).filter((each) => each !== ","));
      if (next === "(") i = end;
    } else if (next !== "(" && !isBeforeList(next)) {
      const end = next === "{" ? tokens.indexOf("}", i) : i;
      selectors.push({ metric: name, matchers: matchersOf(tokens.slice(i + 2, end)) });
      i = end;
    }
  }
  return { selectors, groupedBy };
}

/** `sum by (code) (…)`: the name of an aggregation. */
function isBeforeList(next: string | undefined): boolean {
  return next === "by" || next === "without";
}

function matchersOf(tokens: readonly string[]): Selector["matchers"] {
  const matchers: Selector["matchers"][number][] = [];
  for (let i = 0; i < tokens.length; i += 4) {
    const [label = "", operator = "", value = ""] = tokens.slice(i, i + 3);
    matchers.push({ label, operator, value: JSON.parse(value) as string });
  }
  return matchers;
}

function tokensOf(expression: string): string[] {
  const tokens: string[] = [];
  token.lastIndex = 0;
  while (token.lastIndex < expression.length) {
    const at = token.lastIndex;
    const [text] = token.exec(expression) ?? [];
    if (text === undefined) throw new Error(`what is this: ${expression.slice(at, at + 20)}`);
    if (!/^[\s#]/.test(text)) tokens.push(text);
  }
  return tokens;
}
