import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/*
 * The file `copied-to-postgres` in a data folder says that a copy of it in Postgres can be served, or is about to be. Then
 * the folder is not served any more: two ledgers would count the same uses. Who wants the folder back removes the file.
 */

const text = `latchkey copy has copied this folder to Postgres, which is served instead: DATABASE_URL.
Served again, this folder would be a second ledger, and the same uses would be counted twice.
To give up the copy and serve this folder all the same, remove this file.
`;

function copiedMarkIn(folder: string): string {
  return join(folder, "copied-to-postgres");
}

/** To be done before the copy can be served: at no time can both be. */
export function markCopied(folder: string): void {
  writeFileSync(copiedMarkIn(folder), text, { mode: 0o600, flush: true });
}

/** Why the folder is not served, and what to do. Undefined: it was not copied. */
export function copiedProblem(folder: string): { readonly problem: string; readonly fix: string } | undefined {
  const file = copiedMarkIn(folder);
  if (!existsSync(file)) return undefined;
  return {
    problem: `the data folder ${folder} was copied to Postgres, and the same uses would be counted twice`,
    fix: `Set DATABASE_URL. To give up the copy and serve this folder all the same, remove ${file}.`,
  };
}
