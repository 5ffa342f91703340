import { sql } from "kysely";

/* Values in a SELECT, where an engine cannot tell their type from the column that they are for. */

export const text = (value: string | null | undefined) => sql<string>`CAST(${value ?? null} AS text)`;
export const whole = (value: number | null | undefined) => sql<number>`CAST(${value ?? null} AS bigint)`;
