/** What the process exits with. `--help` and docs/cli.md list them. */
export const exitCodes = { done: 0, refused: 1, usage: 2, unavailable: 3, interrupted: 130 } as const;

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

/** Why a command ends early. Its message is printed for the person who typed it. */
export class CommandError extends Error {
  override readonly name: string = "CommandError";
  readonly exitCode: ExitCode;

  constructor(message: string, exitCode: ExitCode = exitCodes.refused) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** The command line is wrong; nothing was sent. The message must not repeat a value, which may be a secret. */
export class UsageError extends CommandError {
  override readonly name = "UsageError";

  constructor(message: string) {
    super(message, exitCodes.usage);
  }
}
