import { query } from "./run-statement.ts";

/** How a transaction was committed. */
export interface LoggedCommit {
  readonly synchronous_commit: string;
  readonly isolation: string;
  readonly lock_timeout: string;
}

/**
 * Makes the database note how each transaction that changes a row of ours is committed: a deferred trigger runs at its
 * very end, when everything that the transaction has set for itself still holds.
 */
export async function logCommits(url: string): Promise<void> {
  await query(
    url,
    `CREATE TABLE commit_log (changed text, synchronous_commit text, isolation text, lock_timeout text);
     GRANT ALL ON commit_log TO PUBLIC;
     CREATE FUNCTION log_commit() RETURNS trigger LANGUAGE plpgsql AS $$
     BEGIN
       INSERT INTO commit_log VALUES (TG_TABLE_NAME, current_setting('synchronous_commit'),
         current_setting('transaction_isolation'), current_setting('lock_timeout'));
       RETURN NULL;
     END $$;
     DO $$ DECLARE name text; BEGIN
       FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'commit_log' LOOP
         EXECUTE format('CREATE CONSTRAINT TRIGGER log_commit AFTER INSERT OR UPDATE OR DELETE ON %I
           DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION log_commit()', name);
       END LOOP;
     END $$`,
  );
}

/** The commits noted so far that changed a row of this table. */
export async function loggedCommits(url: string, table: string): Promise<LoggedCommit[]> {
  const columns = "synchronous_commit, isolation, lock_timeout";
  return (await query(url, `SELECT ${columns} FROM commit_log WHERE changed = '${table}'`)).rows;
}
