/** The values of flags, by name. */
export type ProgramFlags = Readonly<Record<string, string | boolean | undefined>>;
