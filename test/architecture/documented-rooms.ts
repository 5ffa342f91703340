import { type Room, storeInterfaces } from "./rooms.ts";

/** A row of the table in docs/architecture-rooms.md. Its lists are sorted. */
interface DocumentedRoom {
  readonly ours: readonly string[];
  readonly packages: readonly string[];
  readonly node: boolean;
}

/** What the table names as one: rooms may import all of these files or none. */
const storeInterfacesName = "store's interfaces";

/** The rules as the table writes them. */
export function writeRooms(rooms: Readonly<Record<string, Room>>): Record<string, DocumentedRoom> {
  const written = Object.entries(rooms).map(([name, { ours, packages = [], node }]) => {
    const others = ours.filter((path) => !storeInterfaces.includes(path)).map(writePath);
    const hasInterfaces = storeInterfaces.every((path) => ours.includes(path));
    const all = hasInterfaces ? [...others, storeInterfacesName] : ours.map(writePath);
    return [name, { ours: all.sort(), packages: [...packages].sort(), node }];
  });
  return Object.fromEntries(written);
}

/** A whole room is its name; a part of one is a path below `src`, or below the root for `gen`. */
function writePath(path: string): string {
  const below = path.replace(/^src\//, "");
  return /^[a-z]+\/$/.test(below) ? below.slice(0, -1) : below;
}

export function documentedRooms(page: string): Record<string, DocumentedRoom> {
  const rows = page.matchAll(/^\| `([a-z]+)` \| [^|]+ \| ([^|]+) \| ([^|]+) \| (yes|no) \|$/gm);
  return Object.fromEntries(
    [...rows].map(([, name, ours = "", packages = "", node]) => [
      name,
      { ours: namesIn(ours), packages: namesIn(packages), node: node === "yes" },
    ]),
  );
}

function namesIn(cell: string): string[] {
  return cell === "nothing" || cell === "none" ? [] : cell.split(", ").sort();
}

export function documentedStoreInterfaces(page: string): string[] {
  const [sentence = ""] = /^The store's interfaces are .*$/m.exec(page) ?? [];
  return [...sentence.matchAll(/`([^`]+)`/g)].map(([, file]) => `src/store/${file}`);
}
