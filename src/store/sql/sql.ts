export type SqlValue = string | number | null;

/** SQL text with values in it, in the form that every engine can render: `?` or `$1` stands between each two texts. */
export class Sql {
  /** One more than values. */
  readonly texts: readonly string[];
  readonly values: readonly SqlValue[];

  constructor(texts: readonly string[], values: readonly SqlValue[] = []) {
    this.texts = texts;
    this.values = values;
  }
}

/** SQL of a template: another piece of SQL becomes part of the text, and anything else is a value. */
function tag(texts: readonly string[], ...parts: readonly (Sql | SqlValue | undefined)[]): Sql {
  const merged = [texts[0] as string];
  const values: SqlValue[] = [];
  parts.forEach((part, i) => {
    const piece = part instanceof Sql ? part : { texts: ["", ""], values: [part ?? null] };
    const [first, ...rest] = piece.texts;
    merged.push(`${merged.pop()}${first}`, ...rest);
    merged.push(`${merged.pop()}${texts[i + 1]}`);
    values.push(...piece.values);
  });
  return new Sql(merged, values);
}

function join(parts: readonly (Sql | SqlValue)[], separator = ", "): Sql {
  return tag(["", ...parts.slice(1).map(() => separator), ""], ...parts);
}

/** By name. Quoting the names took a tenth of the time of a change. */
const references = new Map<string, Sql>();

export const sql = Object.assign(tag, {
  join,
  /** Text that is part of a statement as it is. */
  raw: (text: string) => new Sql([text]),
  /** A constant: another one is another statement for the engine. */
  lit: (value: string | number) =>
    new Sql([typeof value === "number" ? String(value) : `'${value.replaceAll("'", "''")}'`]),
  /** The name of a column or table of ours, such as `keys.id`. */
  ref(name: string): Sql {
    let reference = references.get(name);
    if (reference === undefined) {
      const quoted = name.split(".").map((part) => `"${part}"`);
      reference = new Sql([quoted.join(".")]);
      references.set(name, reference);
    }
    return reference;
  },
});

/* Values in a SELECT, where an engine cannot infer their type from the column that they are for. */
export const sqlText = (value: string | null | undefined) => sql`CAST(${value} AS text)`;
export const whole = (value: number | null | undefined) => sql`CAST(${value} AS bigint)`;

/** `table.column`, or `table.column as name`, in SQL. */
export function columnList(columns: readonly string[]): Sql {
  const each = columns.map((column) => {
    const [from = "", name] = column.split(" as ");
    return name === undefined ? sql.ref(from) : sql`${sql.ref(from)} AS ${sql.ref(name)}`;
  });
  return sql.join(each);
}

export function and(conditions: readonly Sql[]): Sql {
  return conditions.length === 0 ? sql`1 = 1` : sql.join(conditions, " AND ");
}
