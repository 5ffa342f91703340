import type { FlagValues, KnownFlag } from "./parse-arguments.ts";

/** A command that works on the settings and the data of this machine. The others call a service: commands/. */
export interface ProgramCommand {
  /** How it is typed, and what it does. */
  readonly usage: readonly (readonly [typed: string, does: string])[];
  /** Flags of its own. */
  readonly flags?: readonly KnownFlag[];
  /** What --help prints below its lines of usage. */
  readonly details?: string;
  /** What --help prints instead. */
  help?(): Promise<string>;
  /** Words that can follow it. */
  readonly operands?: readonly string[];
  /** What is wrong with the operands, if anything. */
  check(operands: readonly string[]): string | undefined;
  /** Loads what it needs, so that no command loads what another one needs. */
  run(operands: readonly string[], flags: FlagValues): Promise<void>;
}

export const programCommands: Readonly<Record<string, ProgramCommand>> = {
  serve: {
    usage: [
      ["serve", "serve until SIGTERM or SIGINT; settings come from the environment"],
      ["--role ROLE", "all (default), edge or coordinator; the same as LATCHKEY_ROLE"],
    ],
    flags: [{ name: "role", value: "ROLE" }],
    details:
      "Settings come from the environment, or from the file that LATCHKEY_SETTINGS_FILE names: docs/configuration.md lists\n" +
      "them. The first start generates a root key and prints where it is.\n\n" +
      "Example:\n  PORT=9000 LATCHKEY_DATA_DIR=/var/lib/latchkey latchkey serve",
    check: ({ length }) => (length > 0 ? "serve takes no operands: settings come from the environment" : undefined),
    run: async (_, { role }) => (await import("./serve.ts")).serve(role as string | undefined),
  },
  backup: {
    usage: [["backup FILE", "copy the data of LATCHKEY_DATA_DIR to FILE, also while it is being served"]],
    details:
      "For the embedded store; Postgres is copied with pg_dump. docs/operations.md tells more.\n\n" +
      "Example:\n  LATCHKEY_DATA_DIR=/var/lib/latchkey latchkey backup latchkey-backup.db",
    check: ({ length }) => (length === 1 ? undefined : "backup takes one file"),
    run: async ([file]) => (await import("./data-commands.ts")).backUp(file as string),
  },
  restore: {
    usage: [["restore FILE", "put a backup into LATCHKEY_DATA_DIR, which must have no data"]],
    details:
      "For the embedded store; Postgres is restored with pg_restore. docs/operations.md tells more.\n\n" +
      "Example:\n  LATCHKEY_DATA_DIR=/var/lib/latchkey latchkey restore latchkey-backup.db",
    check: ({ length }) => (length === 1 ? undefined : "restore takes one file"),
    run: async ([file]) => (await import("./data-commands.ts")).restore(file as string),
  },
  copy: {
    usage: [["copy", "copy the data of LATCHKEY_DATA_DIR to the Postgres that LATCHKEY_COPY_TO names"]],
    details:
      "For moving from the embedded store to Postgres, while nothing serves the data: docs/operations.md tells how.\n\n" +
      "Example:\n  LATCHKEY_DATA_DIR=./data LATCHKEY_COPY_TO_FILE=./target-url latchkey copy",
    check: ({ length }) => (length > 0 ? "copy takes no operands: LATCHKEY_COPY_TO names the target" : undefined),
    run: async () => (await import("./data-commands.ts")).copy(),
  },
  doctor: {
    usage: [["doctor", "check these settings, or a service that runs; --help tells more"]],
    flags: [
      { name: "role", value: "ROLE" },
      { name: "json" },
      { name: "url", value: "URL" },
      { name: "internal-url", value: "URL" },
    ],
    help: async () => (await import("./doctor.ts")).doctorUsage,
    check: ({ length }) => (length > 0 ? "doctor takes no operands" : undefined),
    run: async (_, flags) => (await import("./doctor.ts")).doctor(flags),
  },
  migrate: {
    usage: [
      ["migrate status", "list which changes of the schema the store has and lacks"],
      ["migrate up", "apply those it lacks, as every start does"],
    ],
    operands: ["status", "up"],
    details:
      "The store is Postgres where DATABASE_URL is set, otherwise the data of LATCHKEY_DATA_DIR. docs/operations.md tells\n" +
      "more.\n\nExample:\n  DATABASE_URL=postgres://latchkey@127.0.0.1/latchkey latchkey migrate status",
    check: ([action, ...others]) =>
      (action === "status" || action === "up") && others.length === 0 ? undefined : "migrate takes status or up",
    run: async ([action]) => (await import("./data-commands.ts")).migrate(action as "status" | "up"),
  },
};
