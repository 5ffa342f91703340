import type { Use } from "./replica-key.ts";
import type { World } from "./world.ts";

const tickMs = 20;
/** Longer than a request waits for permits of others. */
const patienceMs = 200;

/** What can go wrong from this state on, when every message arrives and every use is charged. */
export function fillFault(start: World): string | undefined {
  const largest = Math.max(...start.scope.costs);
  return unfilled(start) ?? (largest > 1 ? unserved(start, largest) : undefined);
}

/**
 * E1: if one replica has demand of cost 1, the window fills to exactly the limit before it ends. The other replica has no
 * demand, and must give up what it holds.
 */
function unfilled(start: World): string | undefined {
  const world = goingOn(start);
  world.take(0);
  exchangeAll(world);
  const { gen, endsAtMs } = world.window;
  if (endsAtMs - world.nowMs < world.scope.durationMs / 2) return undefined;
  for (; world.nowMs < endsAtMs - 2 * tickMs; world.pass(tickMs)) {
    world.take(0);
    exchangeAll(world);
    if ((world.admitted[gen] ?? 0) >= world.limit) return world.broken;
  }
  return world.broken ?? `E1: only ${world.admitted[gen]} of ${world.limit} admitted in window ${gen}`;
}

/**
 * E1 for costs: if each replica has one request for the same cost, as many are served as there are permits for, whoever
 * holds them. States in which other requests still wait, or such a cost was denied, are left out.
 */
function unserved(start: World, cost: number): string | undefined {
  const world = goingOn(start);
  exchangeAll(world);
  const { gen, endsAtMs } = world.window;
  const isOpen = endsAtMs - world.nowMs >= world.scope.durationMs / 2;
  if (!isOpen || isAnyWaiting(world)) return undefined;
  const before = world.admitted[gen] ?? 0;
  const served = Math.min(world.replicas.length, Math.floor((world.limit - before) / cost));
  for (let at = 0; at < world.replicas.length; at++) {
    if (world.take(at, cost) === "denied") return undefined;
  }
  for (const untilMs = world.nowMs + patienceMs; world.nowMs < untilMs; world.pass(5)) exchangeAll(world, 1);
  const admitted = (world.admitted[gen] ?? 0) - before;
  if (admitted >= served * cost) return world.broken;
  return world.broken ?? `E1: only ${admitted / cost} of ${served} requests for ${cost} served in window ${gen}`;
}

/** From here on the pools' own estimates count, and fade as those of a replica without demand do. */
function goingOn(start: World): World {
  const world = start.copy();
  const pools = world.replicas.map((_, at) => world.pool(at));
  world.pool = (at) => pools[at] as (typeof pools)[number];
  world.replicas.forEach((_, at) => void world.hear(at));
  return world;
}

function isAnyWaiting(world: World): boolean {
  return world.replicas.some(({ pool }) => pool.waiting.length > 0);
}

function exchangeAll(world: World, turns = 10): void {
  for (let turn = 0; turn < turns; turn++) {
    while (world.flights.length > 0) {
      world.reach(0);
      world.arrive(0, false);
    }
    let sent = false;
    world.replicas.forEach(({ uses }, at) => {
      for (const use of [...uses] as Use[]) world.charge(at, use);
      sent = world.send(at) || sent;
    });
    if (!sent) return;
  }
}
