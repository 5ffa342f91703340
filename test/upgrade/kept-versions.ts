import { execFileSync } from "node:child_process";
import { cpSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { builtProgram } from "../support/artefact.ts";
import { query } from "../support/run-statement.ts";
import { createEmptyDatabase } from "../support/test-database.ts";
import type { KeptCall } from "./kept-data.ts";

const fixtures = join(import.meta.dirname, "fixtures");

/** The versions of which data and artefact are kept. */
export const keptVersions = readdirSync(fixtures).sort();

/** A version that runs beside this one. */
export interface Neighbour {
  readonly name: string;
  /** The version whose data is served. */
  readonly dataOf: string;
  /** Puts its program into the folder. Returns its path. */
  unpack(folder: string): string;
}

/** Side by side is promised from 0.3.0 on. As long as no such version is kept, this one is its own neighbour. */
const keptNeighbours = keptVersions
  .filter((version) => version.localeCompare("0.3.0", "en", { numeric: true }) >= 0)
  .map((version) => ({ name: version, dataOf: version, unpack: (folder: string) => unpackArtefact(version, folder) }));
const itself: Neighbour = { name: "itself", dataOf: keptVersions.at(-1) as string, unpack: copyProgram };
export const neighbours: readonly Neighbour[] = keptNeighbours.length > 0 ? keptNeighbours : [itself];

function copyProgram(folder: string): string {
  cpSync(join(dirname(builtProgram()), ".."), folder, { recursive: true });
  return join(folder, "dist/latchkey.js");
}

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
