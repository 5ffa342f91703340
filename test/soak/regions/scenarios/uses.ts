import { setTimeout as delay } from "node:timers/promises";
import { accountFor } from "../../../support/crash-load.ts";
import { countOf, oddOf } from "../answers.ts";
import { cutDirections, routesOf } from "../cut-edge.ts";
import { coordinators, edges, Lab, usual } from "../lab.ts";
import type { KeyBody } from "../make-keys.ts";
import type { Report } from "../report.ts";

const countedKeys = ["counted 1", "counted 2", "counted 3", "counted 4"];
const remaining = 1_000_000;
const perSecond = 60;
/** Longer than a statement or a message whose caller has given up can still take effect. */
const settledMs = 10_000;

/** Uses of counted keys while edges and coordinators are killed and links are cut: every use is counted once. */
export async function uses(report: Report, rounds = 3): Promise<void> {
  const keys = new Map<string, KeyBody>(countedKeys.map((name) => [name, { remaining }]));
  await using lab = await Lab.start({ distances: usual, login: "trust", keys });
  const loads = edges.map((edge) => lab.load(edge, countedKeys, perSecond));
  await delay(3000);
  for (let round = 0; round < rounds; round++) {
    const edge = edges[round % edges.length] ?? "edge1";
    const coordinator = coordinators[round % coordinators.length] ?? "coordinator1";
    await lab.kill(edge);
    await lab.startEdge(edge);
    await delay(1000);
    await lab.kill(coordinator);
    await delay(1000);
    await lab.startCoordinator(coordinator);
    const routes = routesOf(edge, cutDirections[round % cutDirections.length] ?? "both ways");
    await lab.cut(routes);
    await delay(2500);
    await lab.heal(routes);
    await delay(3000);
  }
  await Promise.all(loads.map((load) => load.stop()));
  await delay(settledMs);
  await tell(report, lab);
}

async function tell(report: Report, lab: Lab): Promise<void> {
  const { rows } = await lab.postgres.query("SELECT subject, remaining FROM counters");
  const left = new Map(rows.map((row) => [row.subject as string, Number(row.remaining)]));
  const problems: string[] = [];
  let [lost, extra, unknown, acknowledged] = [0, 0, 0, 0];
  for (const key of countedKeys) {
    const own = lab.answers.filter((answer) => answer.key === key);
    const values = own.filter(({ outcome }) => outcome === "admitted").map((answer) => answer.remaining ?? Number.NaN);
    const unanswered = countOf(own, "unavailable") + countOf(own, "unanswered");
    const after = left.get(lab.keyIdOf(key)) ?? Number.NaN;
    const account = accountFor({ before: remaining, after, acknowledged: values, unanswered });
    if (new Set(values).size < values.length) problems.push(`${key}: a value was told twice`);
    problems.push(...account.problems);
    [lost, extra] = [lost + account.lost, extra + account.extra];
    [unknown, acknowledged] = [unknown + unanswered, acknowledged + values.length];
  }
  report.atMost(`acknowledged uses lost, of ${acknowledged}`, lost, 0);
  report.atMost("uses counted that no caller was told of (asked: calls without a verdict)", extra, unknown);
  report.none("accounts that do not add up", problems);
  report.none("answers of another kind", oddOf(lab.answers));
}
