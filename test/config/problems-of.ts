import { type Environment, readSettings, SettingsError } from "../../src/config/settings.ts";

/** Enough for a secret. */
export const longEnough = "a-secret-of-thirty-two-characters";

export function noFiles(): string {
  throw Object.assign(new Error("no such file"), { code: "ENOENT" });
}

/** Why these settings are refused. */
export function problemsOf(environment: Environment, readFile: (path: string) => string = noFiles): readonly string[] {
  try {
    readSettings(environment, readFile);
  } catch (error) {
    if (error instanceof SettingsError) return error.problems;
    throw error;
  }
  return [];
}
