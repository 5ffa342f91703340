import { counterOfOwner } from "../../domain/subject.ts";
import type { NewEvent } from "../commands.ts";
import type { CounterHolder } from "./change-counters.ts";
import { isChangedBy } from "./plan.ts";
import { type Sql, sql } from "./sql.ts";
import type { SqlEngine } from "./sql-engine.ts";

/*
 * Readings of counters that are removed or begin: what `domain/usage.ts` says of hours holds here too. The last reading of a
 * removed counter has all that it had spent. Its hour is the next one, or the one after that which a clock that was ahead has
 * reached. A counter that is made again for the same subject goes on from there.
 */

/** The columns of a reading that say whose counter was removed: as those of an event. */
interface HolderColumns {
  readonly from: Sql;
  readonly columns: Sql;
}

const ofKeys: HolderColumns = {
  from: sql`LEFT JOIN keys ON keys.id = locked.subject`,
  columns: sql`keys.api_id, CAST(NULL AS text), keys.owner_id`,
};

/** The id of an owner is its subject without what all subjects of owners begin with. */
const ofOwners: HolderColumns = {
  from: sql`LEFT JOIN owners ON owners.id = substr(locked.subject, ${sql.lit(counterOfOwner("").length + 1)})`,
  columns: sql`owners.first_api_id, owners.api_ids, owners.id`,
};

/**
 * Stores the last readings of counters that the same transaction deletes after this, while their keys or owners are there.
 * From then on they are locked, in the order in which the ledger locks them. `which`: the condition on `subject`.
 */
function addLastReadings(engine: SqlEngine, holders: "keys" | "owners", which: Sql): Sql {
  const { from, columns } = holders === "keys" ? ofKeys : ofOwners;
  return sql`WITH locked AS MATERIALIZED (
      SELECT subject, metered_hour, former_spent, credited - remaining AS spent, ${engine.ledgerHour()} + 1 AS next_hour
      FROM counters WHERE ${which} ORDER BY subject ${engine.forUpdate})
    INSERT INTO readings (subject, hour, spent, former_spent, api_id, api_ids, owner_id)
    SELECT locked.subject, CASE WHEN metered_hour > next_hour THEN metered_hour + 1 ELSE next_hour END, spent, former_spent, ${columns}
    FROM locked ${from} WHERE spent > 0
    ON CONFLICT (subject, hour) DO UPDATE SET spent = excluded.spent, former_spent = excluded.former_spent,
      api_id = excluded.api_id, api_ids = excluded.api_ids, owner_id = excluded.owner_id`;
}

/** Not without the row that has it: an id that a caller has made up could be the subject of another counter. */
export function deleteCounter(engine: SqlEngine, { target, subject }: CounterHolder, event: NewEvent): Sql[] {
  const which = sql`subject = ${subject} AND ${isChangedBy(event, target)}`;
  return deleteCounters(engine, target.table === "keys" ? "keys" : "owners", which);
}

/** `which`: the condition on `subject`. Keys or owners that have the counters are deleted after this, if they are. */
export function deleteCounters(engine: SqlEngine, holders: "keys" | "owners", which: Sql): Sql[] {
  return [addLastReadings(engine, holders, which), sql`DELETE FROM counters WHERE ${which}`];
}

/**
 * For a counter that the same transaction has just made: it goes on where the last one of this subject has ended. That one's
 * last reading goes if its hour is to come: uses of this hour count into this hour.
 */
export function continueReadings(engine: SqlEngine, { target, subject }: CounterHolder, event: NewEvent): Sql[] {
  const hour = engine.ledgerHour();
  const reached = sql`COALESCE((SELECT max(hour) FROM readings WHERE subject = ${subject} AND hour <= ${hour}), 0)`;
  return [
    sql`UPDATE counters SET credited = remaining + latest.spent, former_spent = latest.former_spent, metered_hour = ${reached}
      FROM (SELECT spent, former_spent FROM readings WHERE subject = ${subject} ORDER BY hour DESC LIMIT 1) AS latest
      WHERE subject = ${subject} AND metered_hour = 0 AND ${isChangedBy(event, target)}`,
    sql`DELETE FROM readings WHERE subject = ${subject} AND hour > ${hour} AND ${isChangedBy(event, target)}
      AND (SELECT metered_hour FROM counters WHERE subject = ${subject}) <= ${hour}`,
  ];
}

/** In SQL of both engines: the latest hour that the meter of a counter has reached. It reads all counters. */
export const meteredHourText = "SELECT max(metered_hour) AS hour FROM counters";

/** For an owner that is made: what was spent until now belongs to another one, which had the same id. */
export function endReadings({ target, subject }: CounterHolder, event: NewEvent): Sql {
  return sql`UPDATE readings SET former_spent = spent
    WHERE subject = ${subject} AND hour = (SELECT max(hour) FROM readings WHERE subject = ${subject})
      AND ${isChangedBy(event, target)}`;
}
