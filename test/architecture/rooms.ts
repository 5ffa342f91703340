// Which room may import which: the table of docs/architecture-rooms.md as rules. A test compares the two.

export interface Room {
  /** What the room may import of ours, beside itself: folders end in a slash. */
  readonly ours: readonly string[];
  /** What it may import from npm. */
  readonly packages?: readonly string[];
  /** Whether it may use Node's own modules. */
  readonly node: boolean;
}

export const storeInterfaces = [
  "src/store/key-lookup.ts",

  "src/store/management.ts",
  "src/store/commands.ts",
  "src/store/queries.ts",
  "src/store/changes.ts",
  "src/store/change-feed.ts",
  "src/store/root-key-store.ts",
  "src/store/root-access.ts",
  "src/store/usage-ledger.ts",
  "src/store/permit-ledger.ts",
];

/** The folders of `src`, and `gen`. */
export const rooms: Readonly<Record<string, Room>> = {
  domain: { ours: [], node: false },
  codec: { ours: [], node: false, packages: ["@bufbuild/protobuf"] },
  gen: { ours: ["src/codec/"], node: false, packages: ["@bufbuild/protobuf", "@bufbuild/protovalidate"] },
  ambient: { ours: [], node: true, packages: ["pino", "prom-client"] },
  config: { ours: ["src/domain/"], node: true },
  batching: { ours: ["src/domain/", "src/ambient/"], node: false },
  link: { ours: ["src/domain/"], node: true },
  store: { ours: ["src/domain/", "src/ambient/", "src/batching/"], node: true, packages: ["pg"] },
  ratelimit: {
    ours: ["src/domain/", "src/ambient/", "src/batching/", ...storeInterfaces],
    node: true,
    packages: ["ioredis"],
  },
  core: {
    ours: [
      "src/domain/",
      "src/ambient/",
      "src/link/",
      "src/ratelimit/permit-channel.ts",
      "src/ratelimit/coordinator/",
      "src/ratelimit/local/window-hub.ts",
      "gen/",
      ...storeInterfaces,
    ],
    node: true,
    packages: ["@bufbuild/protobuf"],
  },
  usecases: {
    ours: ["src/domain/", "src/ambient/", "src/ratelimit/limiter.ts", ...storeInterfaces],
    node: false,
  },
  rpc: {
    ours: ["src/domain/", "src/ambient/", "src/usecases/", "src/core/serve/", "src/codec/", "gen/"],
    node: true,
    packages: ["@bufbuild/protobuf", "@bufbuild/protovalidate", "@connectrpc/connect"],
  },
  server: {
    ours: [
      "src/domain/",
      "src/ambient/",
      "src/config/",
      "src/store/",
      "src/ratelimit/",
      "src/core/",
      "src/usecases/",
      "src/rpc/",
      "src/link/",
      "gen/",
    ],
    node: true,
  },
  doctor: {
    ours: [
      "src/domain/",
      "src/ambient/",
      "src/config/",
      "src/store/",
      "src/ratelimit/redis/",
      "src/core/remote/",
      "src/server/",
    ],
    node: true,
  },
  cli: {
    ours: [
      "src/domain/",
      "src/ambient/",
      "src/config/",
      "src/server/",
      "src/doctor/",
      "src/sdk/",
      "gen/latchkey/v1/commands.ts",
      "gen/version.ts",
      "src/store/postgres/pg-error.ts",
      "src/store/sql/migrate.ts",
      "src/store/sqlite/backup.ts",
      "src/store/sqlite/data-folder.ts",
      "src/store/sqlite/restore.ts",
    ],
    node: true,
  },
  sdk: {
    ours: ["gen/latchkey/v1/client.ts", "src/domain/limit-headers.ts"],
    packages: ["fastify", "hono", "@connectrpc/connect"],
    node: false,
  },
};

/** Folders of one room that must not import each other: a front's side and a core's. */
const apart = [
  ["src/ratelimit/strict/", "src/ratelimit/coordinator/"],
  ["src/core/remote/", "src/core/serve/"],
];

/** A source file's path from the root of the repository, and its text. */
export type Sources = ReadonlyMap<string, string>;

/** Every import that its room does not allow, and every cycle, each in a line. */
export function findTrespasses(sources: Sources): string[] {
  const imports = new Map([...sources].map(([file, text]) => [file, importsOf(file, text)]));
  const trespasses = [...imports].flatMap(([file, targets]) =>
    targets.filter((target) => !isAllowed(file, target)).map((target) => `${file} imports ${target}`),
  );
  return [...trespasses, ...findCycles(imports)];
}

/** The name of the room that a file is in. */
export function roomOf(file: string): string {
  const [top = "", folder = "", room = ""] = file.split("/");
  // What is generated for a room belongs to it.
  if (top === "gen" && folder === "resources") return room;
  return top === "src" ? folder : top;
}

function isAllowed(file: string, target: string): boolean {
  const name = roomOf(file);
  const room = rooms[name];
  if (room === undefined) return false;
  if (target.startsWith("node:")) return room.node;
  for (const folders of apart) {
    const [own, other] = [file, target].map((path) => folders.find((folder) => path.startsWith(folder)));
    if (own !== undefined && other !== undefined && own !== other) return false;
  }
  if (/^(src|gen)\//.test(target) && roomOf(target) === name) return true;
  if (/^(src|gen|test|tools|bench)\//.test(target)) {
    return room.ours.some((allowed) => (allowed.endsWith("/") ? target.startsWith(allowed) : target === allowed));
  }
  return (room.packages ?? []).some((allowed) => target === allowed || target.startsWith(`${allowed}/`));
}

/** The targets of static and dynamic imports and re-exports; relative ones as paths from the root. */
export function importsOf(file: string, text: string): string[] {
  const specifiers = [...text.matchAll(/(?:\bfrom\s+|(?<!")\bimport\s*\(?\s*)"([^"]+)"/g)].map(
    (match) => match[1] ?? "",
  );
  return specifiers.map((specifier) =>
    specifier.startsWith(".") ? new URL(specifier, `file:///${file}`).pathname.slice(1) : specifier,
  );
}

function findCycles(imports: ReadonlyMap<string, readonly string[]>): string[] {
  const finished = new Set<string>();
  const cycles: string[] = [];
  const visit = (file: string, path: readonly string[]) => {
    const seenAt = path.indexOf(file);
    if (seenAt !== -1) cycles.push(`a cycle: ${[...path.slice(seenAt), file].join(" → ")}`);
    if (seenAt !== -1 || finished.has(file)) return;
    for (const target of imports.get(file) ?? []) visit(target, [...path, file]);
    finished.add(file);
  };
  for (const file of imports.keys()) visit(file, []);
  return cycles;
}
