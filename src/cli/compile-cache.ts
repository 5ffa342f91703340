import { existsSync, lstatSync, mkdirSync, realpathSync, statSync } from "node:fs";
import module from "node:module";
import { homedir } from "node:os";
import { basename, dirname, isAbsolute, join } from "node:path";
import { nearestThatExists } from "../config/nearest-folder.ts";

/**
 * Caches compiled code between starts, so that later starts are faster.
 *
 * The next start runs code from the cache, so a user who can write to it can run code as the service. Node's default is
 * in the temporary folder, where another user could create it first. So the cache is in a private folder, or off.
 */
export function enableCompileCache(environment: NodeJS.ProcessEnv): void {
  // Node itself obeys these two. Protecting a folder that the operator chose is up to the operator.
  if (environment.NODE_COMPILE_CACHE || environment.NODE_DISABLE_COMPILE_CACHE) return;
  const folder = claimPrivateFolder(join(cacheHome(environment), "latchkey"));
  if (folder === undefined) return;
  module.enableCompileCache(folder);
  // For the processes and threads that this one starts.
  environment.NODE_COMPILE_CACHE = folder;
}

/** The cache folder of this user. */
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
 * Creates the folder if needed. Returns its real path if this user owns it, its mode is 0700, and only root and this
 * user can replace it; otherwise undefined.
 */
export function claimPrivateFolder(path: string): string | undefined {
  const uid = process.getuid?.();
  if (uid === undefined || !isAbsolute(path)) return undefined;
  try {
    // Checked before anything is created: under `sudo` this may be the home of another user.
    if (!isGuarded(realpathSync(nearestThatExists(dirname(path))), uid)) return undefined;
    makeFolder(path);
    const real = join(realpathSync(dirname(path)), basename(path));
    // For a symbolic link this looks at the link itself.
    const stats = lstatSync(real);
    return stats.isDirectory() && stats.uid === uid && (stats.mode & 0o777) === 0o700 ? real : undefined;
  } catch {
    // The file system can be read-only or full. Without a cache the start is only slower.
    return undefined;
  }
}

/** Not with Node's `recursive`: it never ends on a file system that reports a new folder's parent as missing. */
function makeFolder(path: string): void {
  if (existsSync(path)) return;
  makeFolder(dirname(path));
  mkdirSync(path, { mode: 0o700 });
}

const STICKY = 0o1000;
const WRITABLE_BY_OTHERS = 0o022;

/** Whether only root and this user can rename or replace the folder's content, checked for every folder up to `/`. */
function isGuarded(folder: string, uid: number): boolean {
  const stats = statSync(folder);
  const isOpen = (stats.mode & WRITABLE_BY_OTHERS) !== 0 && (stats.mode & STICKY) === 0;
  if (isOpen || (stats.uid !== 0 && stats.uid !== uid)) return false;
  return dirname(folder) === folder || isGuarded(dirname(folder), uid);
}
