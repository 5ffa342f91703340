import type { Check } from "./run-checks.ts";

/** What reading the environment came to. */
export interface SettingsRead {
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
  /** The settings that differ from their defaults. */
  readonly set: readonly string[];
}

/** Settings by the rules of a start. `reported` are problems that another check reports. */
export function checkSettings({ problems, warnings, set }: SettingsRead, reported: ReadonlySet<string>): Check {
  return {
    area: "settings",
    run({ looked, found }) {
      looked(set.length === 0 ? "all have their defaults" : `set: ${set.join(", ")}`);
      for (const problem of problems) {
        if (reported.has(problem)) continue;
        const [name = ""] = /^[A-Z][A-Z_]+/.exec(problem) ?? [];
        found("settings-invalid", problem, `Set ${name} as it says, or unset it; docs/configuration.md explains it.`);
      }
      for (const warning of warnings) {
        const [name = ""] = /^[A-Z][A-Z_0-9]+/.exec(warning) ?? [];
        found("settings-unknown", warning, `unset ${name}, or correct its name by docs/configuration.md.`);
      }
    },
  };
}
