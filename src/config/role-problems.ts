/** The settings that must fit the role. Those that were wrong by themselves are undefined and already reported. */
interface RoleSettings {
  readonly role: string | undefined;
  readonly coordinators: readonly string[] | undefined;
  readonly workers: number | undefined;
  readonly apis: string | undefined;
  readonly storeMustExist: boolean | undefined;
}

/** Settings that contradict each other. */
export function roleProblems(
  { role, coordinators, workers, apis, storeMustExist }: RoleSettings,
  { hasDatabase, hasRootKeys }: { readonly hasDatabase: boolean; readonly hasRootKeys: boolean },
): string[] {
  const problems: string[] = [];
  if (role === "edge" && coordinators?.length === 0) {
    problems.push("LATCHKEY_COORDINATORS must name at least one coordinator where the role is edge");
  }
  if (role !== undefined && role !== "edge" && coordinators !== undefined && coordinators.length > 0) {
    problems.push("LATCHKEY_COORDINATORS must not be set unless the role is edge: others go to the ledger themselves");
  }
  if (role === "coordinator" && !hasDatabase) {
    problems.push("DATABASE_URL must be set where the role is coordinator: the embedded store serves one process");
  }
  if (role === "edge" && hasDatabase) {
    problems.push("DATABASE_URL must not be set where the role is edge: only its coordinators reach the database");
  }
  if (role === "edge" && hasRootKeys) {
    problems.push("LATCHKEY_ROOT_KEY must not be set where the role is edge: its coordinators check root keys");
  }
  if (role === "edge" && apis === "explicit") {
    problems.push("LATCHKEY_APIS must not be set where the role is edge: set it where its coordinators are");
  }
  if (role === "edge" && storeMustExist) {
    problems.push("LATCHKEY_STORE must not be set where the role is edge: set it where its coordinators are");
  }
  if (role === "coordinator" && (workers ?? 1) > 1) {
    problems.push("LATCHKEY_WORKERS must be 1 where the role is coordinator: it serves no keys");
  }
  return problems;
}
