import { existsSync, lstatSync, mkdirSync, realpathSync, type Stats, statSync } from "node:fs";
import module from "node:module";
import { homedir } from "node:os";
import { basename, dirname, isAbsolute, join } from "node:path";

/**
 * Keeps compiled code between starts, so that later ones are quicker than the first.
 *
 * The next start runs what is kept, so a user who can write to the cache can run code as the service. Node's default
 * lies in the temporary folder, where another user can make it first. So it is in a private folder, or there is none.
 */
export function enableCompileCache(environment: NodeJS.ProcessEnv): void {
  // Node has obeyed these two already. A folder that the operator chose is the operator's to guard.
  if (environment.NODE_COMPILE_CACHE || environment.NODE_DISABLE_COMPILE_CACHE) return;
  const folder = claimPrivateFolder(join(cacheHome(environment), "latchkey"));
  if (folder !== undefined) module.enableCompileCache(folder);
}

/** Where programs of this user keep what they can make again. */
function cacheHome({ XDG_CACHE_HOME: home }: NodeJS.ProcessEnv): string {
  if (home && isAbsolute(home)) return home;
  try {
    return join(homedir(), ".cache");
  } catch {
    // This user has no home.
    return "";
  }
}

/**
 * Makes the folder if it is not there. Answers its real path if it is this user's, of mode 0700, and no other user but
 * root can put another one in its place; otherwise undefined.
 */
export function claimPrivateFolder(path: string): string | undefined {
  const uid = process.getuid?.();
  if (uid === undefined || !isAbsolute(path)) return undefined;
  try {
    // Checked before anything is made: under `sudo` this may be the home of another user.
    if (!isGuarded(realpathSync(nearestThatExists(dirname(path))), uid)) return undefined;
    makeFolder(path);
    const real = join(realpathSync(dirname(path)), basename(path));
    // Of a link this is the link itself.
    const stats = lstatSync(real);
    return stats.isDirectory() && stats.uid === uid && permissions(stats) === 0o700 ? real : undefined;
  } catch {
    // The file system can be read-only or full. A start without a cache is slower, and that is all.
    return undefined;
  }
}

/** Not by Node's `recursive`, which goes on for ever where a file system says that a new folder's parent is missing. */
function makeFolder(path: string): void {
  if (existsSync(path)) return;
  makeFolder(dirname(path));
  mkdirSync(path, { mode: 0o700 });
}

function nearestThatExists(path: string): string {
  return existsSync(path) ? path : nearestThatExists(dirname(path));
}

const STICKY = 0o1000;
const WRITABLE_BY_OTHERS = 0o022;

/** Whether what lies in the folder can be renamed or replaced by root and this user only, on the whole way from `/`. */
function isGuarded(folder: string, uid: number): boolean {
  const stats = statSync(folder);
  const isOpen = (stats.mode & WRITABLE_BY_OTHERS) !== 0 && (stats.mode & STICKY) === 0;
  if (isOpen || (stats.uid !== 0 && stats.uid !== uid)) return false;
  return dirname(folder) === folder || isGuarded(dirname(folder), uid);
}

function permissions({ mode }: Stats): number {
  return mode & 0o777;
}
