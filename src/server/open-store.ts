import { setTimeout as delay } from "node:timers/promises";
import type { Log } from "../ambient/log.ts";
import { printablePostgresUrl } from "../domain/postgres-url.ts";
import type { Secret } from "../domain/secret.ts";
import { Unavailable } from "../domain/unavailable.ts";
import { createDeferredStore } from "../store/deferred-store.ts";
import type { LedgerWatch } from "../store/ledger-watch.ts";
import type { OnUpgrade } from "../store/sql/migrate.ts";
import { requireDataFile } from "../store/sqlite/clean-stop.ts";
import { copiedProblem } from "../store/sqlite/copied-mark.ts";
import { claimDataFolder, DataFolderError, databaseFileIn } from "../store/sqlite/data-folder.ts";
import type { Store } from "../store/store.ts";
import { DatabaseWatch, reasonOf } from "./database-watch.ts";
import type { StartOptions } from "./running-server.ts";

type OpenStoreOptions = StartOptions & { readonly watch: LedgerWatch };

/**
 * How long a start waits for its store before it listens. A replica that listens earlier would get requests from load
 * balancers and answer 503. One that never listens would look dead.
 */
export const storeWaitMs = 2000;

export interface OpenedStore {
  /** Throws `Unavailable` until it is usable. */
  readonly store: Store;
  /** Resolves when the store can be used; rejects when it never will be. */
  readonly usable: Promise<void>;
}

/** Opens the configured store. Only its engine is loaded: loading the one for Postgres takes a tenth of the start. */
export function openStore(options: OpenStoreOptions): Promise<OpenedStore> {
  const url = options.settings.databaseUrl;
  return url === undefined ? openEmbedded(options) : Promise.resolve(openPostgres(url, options));
}

async function openEmbedded({ settings, onFatal, ...ambient }: OpenStoreOptions): Promise<OpenedStore> {
  const { dataDir, storeMustExist: mustExist } = settings;
  if (mustExist) requireDataFile(databaseFileIn(dataDir));
  const folder = claimDataFolder(dataDir);
  try {
    const copied = copiedProblem(dataDir);
    if (copied !== undefined) throw new DataFolderError(`${copied.problem}. ${copied.fix}`);
    const { openSqliteStore } = await import("../store/sqlite/open-sqlite-store.ts");
    const file = folder.databaseFile;
    const onCreated = () => ambient.log.warn(createdText, { file });
    const onUpgrade = logUpgrade(ambient.log);
    const store = await openSqliteStore({ ...ambient, file, onDeath: onFatal, mustExist, onCreated, onUpgrade });
    const close = () => store.close().finally(() => folder.release());
    return { store: { ...store, close }, usable: Promise.resolve() };
  } catch (error) {
    folder.release();
    throw error;
  }
}

/** At level warn: where there was a store before, its keys are gone. */
const createdText = "the store was empty: a new one was created";

function logUpgrade(log: Log): OnUpgrade {
  return (table, rows, total) => log.info("the store is being upgraded", { table, rows, total });
}

const retryMs = 500;

/** Waits for a database that is not there. Meanwhile the service is alive but not ready. */
function openPostgres(url: Secret, { settings, ...ambient }: OpenStoreOptions): OpenedStore {
  const { usageLanes: lanes, usageTimeoutMs, databaseConnectionsMax: connectionsMax } = settings;
  const { storeMustExist: mustExist } = settings;
  const database = printablePostgresUrl(url.reveal());
  const onCreated = () => ambient.log.warn(createdText, { database });
  const options = { lanes, usageTimeoutMs, connectionsMax, mustExist, onCreated };
  const { store, fulfil } = createDeferredStore(lanes);
  const watch = new DatabaseWatch(ambient);
  // An index may be under construction for hours: who waits for it must be able to stop.
  const closing = new AbortController();
  const { signal } = closing;
  const onIndexBuild = (index: string, by: string) =>
    ambient.log.info("an index is built; this replica is ready afterwards", { index, by });
  const onUpgrade = logUpgrade(ambient.log);
  const open = async () => {
    let lastReason: string | undefined;
    const { openPostgresStore } = await import("../store/postgres/open-postgres-store.ts");
    for (let tries = 0; !signal.aborted; tries++) {
      try {
        const opened = await openPostgresStore({
          ...ambient,
          ...options,
          url: url.reveal(),
          signal,
          onIndexBuild,
          onUpgrade,
        });
        fulfil(opened);
        if (!signal.aborted) watch.start(opened.check);
        return;
      } catch (error) {
        if (!(error instanceof Unavailable)) throw error;
        if (signal.aborted) return;
        const reason = reasonOf(error);
        if (tries === 0 || reason !== lastReason) ambient.log.warn("waiting for the database", { database, reason });
        lastReason = reason;
        await delay(retryMs);
      }
    }
  };
  const usable = open();
  // A failure reaches the callers that await `usable`. There may be none yet, so it must not count as unhandled.
  usable.catch(() => {});
  const close = async () => {
    closing.abort();
    watch.stop();
    await usable.catch(() => {});
    await store.close();
  };
  return { store: { ...store, close }, usable };
}

/** Retries until the store answers or the service stops. */
export async function untilAvailable<Answer>(ask: () => Promise<Answer>, isStopping: () => boolean): Promise<Answer> {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof Unavailable) || isStopping()) throw error;
      await delay(retryMs);
    }
  }
}
