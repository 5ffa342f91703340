import { covers, isPermissionName, permissionLengthMax } from "./permissions.ts";

/**
 * What a verification asks of a key's permissions: one of them, or several with AND and OR. AND comes before OR, as
 * everywhere; operands of the same operator are in one list.
 */
export type PermissionQuery = string | Combination;

interface Combination {
  readonly operator: Operator;
  readonly operands: readonly PermissionQuery[];
}

type Operator = "AND" | "OR";

export const queryLengthMax = 1000;
export const queryTermsMax = 50;
export const queryDepthMax = 10;

/** A text that is not a query. Says where, and repeats nothing of the text. */
export class QuerySyntaxError extends Error {
  override readonly name = "QuerySyntaxError";
}

/** Throws `QuerySyntaxError`. */
export function parsePermissionQuery(text: string): PermissionQuery {
  if (text.length > queryLengthMax) throw new QuerySyntaxError(`must have at most ${queryLengthMax} characters`);
  return new QueryParser(text).parse();
}

/** Whether a key with these permissions may do what is asked. */
export function isGranted(query: PermissionQuery, permissions: readonly string[]): boolean {
  if (typeof query === "string") return covers(permissions, query);
  const { operator, operands } = query;
  // A loop: it runs for every verification with a query.
  for (const operand of operands) if (isGranted(operand, permissions) === (operator === "OR")) return operator === "OR";
  return operator === "AND";
}

/** The query without what the permissions grant. Only for a query that is not granted as a whole. */
export function missingFrom(query: PermissionQuery, permissions: readonly string[]): string {
  if (typeof query === "string") return query;
  const { operator } = query;
  const lacking = query.operands.filter((operand) => !isGranted(operand, permissions));
  const texts = lacking.map((operand) => {
    const text = missingFrom(operand, permissions);
    return operator === "AND" && lacking.length > 1 && text.includes(" OR ") ? `(${text})` : text;
  });
  return texts.join(` ${operator} `);
}

/** Most queries that are remembered. At a thousand characters each they take a few megabytes. */
export const rememberedQueriesMax = 1000;

/**
 * A parser that remembers queries: callers have a few, and send them with every verification. Cleared when full, because
 * strangers can make up any number of them.
 */
export function createQueryParser(): typeof parsePermissionQuery {
  const remembered = new Map<string, RememberedQuery>();
  // Often the same comes again, and comparing two texts takes less than finding one in a map.
  let last: RememberedQuery | undefined;
  return (text) => {
    if (last?.text !== text) last = remembered.get(text) ?? remember(text);
    return last.query;
  };

  function remember(part: string): RememberedQuery {
    // A copy: the text may be a part of a whole request body, which would stay in memory with it.
    const text = part.split("").join("");
    const parsed = { text, query: parsePermissionQuery(text) };
    if (remembered.size >= rememberedQueriesMax) remembered.clear();
    remembered.set(text, parsed);
    return parsed;
  }
}

interface RememberedQuery {
  readonly text: string;
  readonly query: PermissionQuery;
}

const tokenPattern = /[()]|[A-Za-z0-9_.:-]+/y;
const spacePattern = /[ \t\r\n]*/y;
const operatorPattern = /^(?:and|or)$/i;

/** By recursive descent, which is as deep as the parentheses. */
class QueryParser {
  readonly #text: string;
  /** The token that comes next; empty at the end. */
  #token = "";
  /** Where it begins. */
  #at = 0;
  #terms = 0;
  #depth = 0;

  constructor(text: string) {
    this.#text = text;
    this.#next();
  }

  parse(): PermissionQuery {
    const query = this.#read("OR");
    if (this.#token !== "") throw this.#fault("must have AND, OR or its end");
    return query;
  }

  /** One operand, or several with this operator. AND binds more tightly, so the operands of OR are read with AND. */
  #read(operator: Operator): PermissionQuery {
    const operands: PermissionQuery[] = [];
    for (;;) {
      const operand = operator === "OR" ? this.#read("AND") : this.#readOperand();
      // `a AND (b AND c)` is `a AND b AND c`.
      if (typeof operand === "object" && operand.operator === operator) operands.push(...operand.operands);
      else operands.push(operand);
      if (!this.#skip(operator)) break;
    }
    return operands.length === 1 ? (operands[0] as PermissionQuery) : { operator, operands };
  }

  #readOperand(): PermissionQuery {
    if (this.#token !== "(") return this.#readTerm();
    if (this.#depth === queryDepthMax) throw this.#fault(`must be nested at most ${queryDepthMax} deep; it is deeper`);
    this.#depth++;
    this.#next();
    const query = this.#read("OR");
    if (!this.#skip(")")) throw this.#fault("must have AND, OR or )");
    this.#depth--;
    return query;
  }

  /** Goes on if the token is this one. */
  #skip(token: string): boolean {
    if (this.#token !== token) return false;
    this.#next();
    return true;
  }

  #readTerm(): string {
    const term = this.#token;
    if (operatorPattern.test(term)) throw this.#fault("must have a permission or (, and not an operator,");
    if (term === "" || term === ")") throw this.#fault("must have a permission or (");
    if (!isPermissionName(term))
      throw this.#fault(`must have a permission of at most ${permissionLengthMax} characters`);
    if (this.#terms === queryTermsMax) throw this.#fault(`must have at most ${queryTermsMax} permissions; it has more`);
    this.#terms++;
    this.#next();
    return term;
  }

  #next(): void {
    const text = this.#text;
    spacePattern.lastIndex = this.#at + this.#token.length;
    spacePattern.test(text);
    this.#at = spacePattern.lastIndex;
    tokenPattern.lastIndex = this.#at;
    const token = tokenPattern.exec(text)?.[0] ?? "";
    if (token === "" && this.#at < text.length)
      throw this.#fault("has a character that a permission in a query cannot have");
    this.#token = token;
  }

  /** People count from 1. */
  #fault(message: string): QuerySyntaxError {
    return new QuerySyntaxError(`${message} at character ${this.#at + 1}`);
  }
}
