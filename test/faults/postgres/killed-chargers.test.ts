import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it, vi } from "vitest";
import { sized } from "../../support/deep.ts";
import { query } from "../../support/run-statement.ts";
import { tempFolder } from "../../support/temp-folder.ts";
import { hasPostgres } from "../../support/test-database.ts";
import { atTestEnd } from "../../support/test-end.ts";
import { behindUnreliableLink, databaseWith } from "./lane-fixture.ts";

const start: Record<string, number> = {
  k1: sized(300, 2000),
  k2: 1e6,
  k3: 1e6,
  k4: 1e6,
  k5: 1e6,
  k6: 1e6,
  o1: 1e6,
  o2: sized(500, 3000),
};
const rounds = sized(1, 3);
const answersBeforeKill = 400;

interface Account {
  /** Units of each counter that callers were told are theirs. */
  readonly acknowledged: Record<string, number>;
  /** Units of each counter that were asked for without an answer that says what became of them. */
  readonly open: Record<string, number>;
  /** How often each answer was given. */
  readonly answers: Record<string, number>;
}

/** Reads what a process has noted. */
function addNotes({ acknowledged, open, answers }: Account, noteFile: string): void {
  const asked = new Map<string, { cost: number; counters: readonly string[] }>();
  // The last line may have been cut in the middle: then it is one that was never told to anybody.
  for (const line of readFileSync(noteFile, "utf8").split("\n").slice(0, -1)) {
    const [answer = "", number = "", cost, ...counters] = line.split(" ");
    if (answer === "ask") {
      asked.set(number, { cost: Number(cost), counters });
      continue;
    }
    answers[answer] = (answers[answer] ?? 0) + 1;
    if (answer === "unknown") continue;
    const { cost: taken, counters: charged } = asked.get(number) as { cost: number; counters: readonly string[] };
    if (answer === "spent") for (const counter of charged) acknowledged[counter] = (acknowledged[counter] ?? 0) + taken;
    asked.delete(number);
  }
  for (const { cost, counters } of asked.values())
    for (const counter of counters) open[counter] = (open[counter] ?? 0) + cost;
}

/** Starts a process that charges, and answers how to kill it. `isApart`: it charges a key and its owner one by one. */
function startCharger(url: string, isApart: boolean) {
  const noteFile = join(tempFolder(), "notes");
  const program = [join(import.meta.dirname, "charger.ts"), url, noteFile, ...(isApart ? ["apart"] : [])];
  const child = spawn(process.execPath, program, { stdio: "inherit" });
  const exited = once(child, "exit");
  atTestEnd(() => child.kill("SIGKILL"));
  return {
    noteFile,
    answers: () => (existsSync(noteFile) ? (readFileSync(noteFile, "utf8").match(/^(?!ask)/gm)?.length ?? 0) : 0),
    async kill() {
      child.kill("SIGKILL");
      await exited;
    },
  };
}

/** Two processes at a time, killed when they have had their answers. What they were told, and what the ledger has taken. */
async function chargeAndKill(rounds: number, { isApart = false } = {}) {
  const url = await databaseWith(Object.keys(start), 1);
  for (const [counter, balance] of Object.entries(start))
    await query(url, `UPDATE counters SET remaining = ${balance} WHERE subject = '${counter}'`);
  const link = await behindUnreliableLink(url);
  const account: Account = { acknowledged: {}, open: {}, answers: {} };
  for (let round = 0; round < rounds; round++) {
    const chargers = [startCharger(link.url, isApart), startCharger(link.url, isApart)];
    while (chargers.some(({ answers }) => answers() < answersBeforeKill)) await delay(5);
    await Promise.all(chargers.map(({ kill }) => kill()));
    for (const { noteFile } of chargers) addNotes(account, noteFile);
  }
  // What was under way when its process died may still be committed.
  const others =
    "SELECT count(*)::int AS n FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
  await vi.waitFor(async () => expect((await query(url, others)).rows[0].n).toBe(0), { timeout: 60_000 });
  const { rows } = await query(url, "SELECT subject, remaining::int FROM counters");
  const taken = new Map<string, number>(
    rows.map(({ subject, remaining }) => [subject, (start[subject] as number) - remaining]),
  );
  const takenOf = (...counters: string[]) => counters.reduce((sum, each) => sum + (taken.get(each) ?? Number.NaN), 0);
  return { account, takenOf, cuts: link.proxy.cuts };
}

describe.runIf(hasPostgres)("processes that charge keys and their owners, killed under load with replies cut", () => {
  it("lose nothing and charge nothing twice: both counters or neither", async () => {
    const { account, takenOf, cuts } = await chargeAndKill(rounds);
    const { acknowledged, open, answers } = account;
    const extra = Object.keys(start).map((counter) => takenOf(counter) - (acknowledged[counter] ?? 0));
    console.log(`${JSON.stringify(answers)}, ${cuts} replies cut, extra ${extra}, open ${JSON.stringify(open)}`);
    expect(extra.filter((units) => units < 0)).toEqual([]);
    expect(Object.keys(start).filter((counter, i) => (extra[i] as number) > (open[counter] ?? 0))).toEqual([]);
    expect(takenOf("o1")).toBe(takenOf("k1", "k2", "k3"));
    expect(takenOf("o2")).toBe(takenOf("k4", "k5"));
    // Used up but for less than the largest cost, in spite of everything.
    for (const scarce of ["k1", "o2"]) expect((start[scarce] as number) - takenOf(scarce)).toBeLessThan(20);
    // Otherwise there was hardly a load, and nothing has been shown.
    expect(answers.spent).toBeGreaterThan(sized(200, rounds * answersBeforeKill));
    for (const lacking of ["own", "shared"]) expect(answers[lacking]).toBeGreaterThan(0);
    expect(cuts).toBeGreaterThan(sized(1, 5));
    expect(Object.values(open).some((units) => units > 0)).toBe(true);
  });

  it("are caught by this very test if they charge a key and then its owner", async () => {
    const { takenOf } = await chargeAndKill(1, { isApart: true });
    expect(takenOf("o1")).not.toBe(takenOf("k1", "k2", "k3"));
  });
});
