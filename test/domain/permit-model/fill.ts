import type { World } from "./world.ts";

const tickMs = 20;

/**
 * E1 from this state on: when every message arrives, every use is charged and one replica has demand, the window fills
 * to exactly the limit before it ends. The other replica has none, and must give up what it holds.
 */
export function fillFault(start: World): string | undefined {
  const world = start.copy();
  // From here on the pools' own estimates count, and fade as those of a replica without demand do.
  const pools = world.replicas.map((_, at) => world.pool(at));
  world.pool = (at) => pools[at] as (typeof pools)[number];
  world.replicas.forEach((_, at) => void world.hear(at));
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

function exchangeAll(world: World): void {
  for (let turn = 0; turn < 10; turn++) {
    while (world.flights.length > 0) {
      world.reach(0);
      world.arrive(0, false);
    }
    let sent = false;
    world.replicas.forEach(({ uses }, at) => {
      for (const gen of [...uses]) world.charge(at, gen);
      sent = world.send(at) || sent;
    });
    if (!sent) return;
  }
}
