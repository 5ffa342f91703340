import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { query } from "../support/run-statement.ts";
import { createEmptyDatabase } from "../support/test-database.ts";
import type { KeptCall } from "./kept-data.ts";

const fixtures = join(import.meta.dirname, "fixtures");

/** The versions of which data and artefact are kept. */
export const keptVersions = readdirSync(fixtures).sort();

export function keptFile(version: string, name: string): string {
  return join(fixtures, version, name);
}

export function keptCalls(version: string, store: "embedded" | "postgres"): KeptCall[] {
  return JSON.parse(readFileSync(keptFile(version, `${store}.json`), "utf8")) as KeptCall[];
}

/** A new database with what that version has left in Postgres. */
export async function restoreDump(version: string): Promise<string> {
  const url = await createEmptyDatabase();
  await query(url, readFileSync(keptFile(version, "postgres.sql"), "utf8"));
  return url;
}

/** Unpacks the artefact into the folder. Returns the path of its program. */
export function unpackArtefact(version: string, folder: string): string {
  execFileSync("tar", ["-xzf", keptFile(version, `latchkey-${version}.tgz`), "-C", folder]);
  return join(folder, "package/dist/latchkey.js");
}
