import type { CompiledQuery } from "kysely";
import type { SqlEngine } from "./sql-engine.ts";

/** Stands for a value in a query that is compiled before its values are known. */
class Placeholder {
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }
}

/** Of any type, so that a query is built as if these were its values. */
type Placeholders<Name extends string> = Readonly<Record<Name, never>>;

/**
 * A query whose text never changes. It is built and compiled at its first use on each engine, which takes as long as running
 * it; later only the values are filled in.
 */
export function compileOnce<Name extends string>(
  names: readonly Name[],
  build: (engine: SqlEngine, values: Placeholders<Name>) => CompiledQuery,
): (engine: SqlEngine, values: Readonly<Record<Name, string | number | undefined>>) => CompiledQuery {
  const placeholders = Object.fromEntries(names.map((name) => [name, new Placeholder(name)])) as Placeholders<Name>;
  const compiled = new WeakMap<SqlEngine, CompiledQuery>();
  return (engine, values) => {
    const query = compiled.get(engine) ?? build(engine, placeholders);
    compiled.set(engine, query);
    const parameters = query.parameters.map((parameter) =>
      parameter instanceof Placeholder ? (values[parameter.name as Name] ?? null) : parameter,
    );
    return { ...query, parameters };
  };
}
