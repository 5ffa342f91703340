import { dropFirst } from "../../../src/domain/cost-queue.ts";
import { fillFault } from "./fill.ts";
import type { Flight } from "./replica-key.ts";
import type { Parts, Scope } from "./scope.ts";
import { stepMs, World } from "./world.ts";

export interface Exploration {
  readonly states: number;
  /** The broken promise and the shortest path to it. Undefined: every promise holds in every state. */
  readonly fault: { readonly broken: string; readonly steps: readonly string[] } | undefined;
}

interface Node {
  readonly world: World;
  readonly from: Node | undefined;
  readonly step: string;
}

/** Every state that can be reached within the scope, breadth first. Ends at the first that is broken. */
export function explore(scope: Scope, parts: Parts): Exploration {
  const first = new World(scope, parts);
  const seen = new Set([first.key()]);
  let layer: Node[] = [{ world: first, from: undefined, step: "start" }];
  while (layer.length > 0) {
    const next: Node[] = [];
    for (const from of layer) {
      for (const [step, apply] of stepsFrom(from.world)) {
        const world = from.world.copy();
        apply(world);
        const key = world.key();
        // The broken promise is not part of the state's key: the same state may have been reached correctly before.
        if (seen.has(key) && world.broken === undefined) continue;
        seen.add(key);
        const node = { world, from, step };
        const broken = world.broken ?? (scope.fills ? fillFault(world) : undefined);
        if (broken !== undefined) return { states: seen.size, fault: { broken, steps: pathTo(node) } };
        next.push(node);
      }
    }
    layer = next;
  }
  return { states: seen.size, fault: undefined };
}

type Step = readonly [string, (world: World) => void];

function* stepsFrom(world: World): Generator<Step> {
  const { counts, nowMs, scope } = world;
  // A replica that does nothing while this happens is one that is paused.
  if (nowMs < scope.endMs) yield ["time passes", (to) => to.pass(stepMs)];
  for (let at = 0; at < world.replicas.length; at++) yield* replicaSteps(world, at);
  for (let index = 0; index < world.flights.length; index++) yield* flightSteps(world, index);
  if (counts.settings > 0) yield ["the ledger's clock is set", counted("settings", (to) => to.setClock())];
  if (counts.shortenings > 0) yield ["the duration is shortened", counted("shortenings", (to) => to.shorten())];
  if (counts.lowerings > 0) yield ["the limit is lowered", counted("lowerings", (to) => to.lower())];
  if (world.parts.reclaims && world.window.granted > world.window.spent && nowMs < world.window.endsAtMs) {
    yield ["the ledger takes blocks back", (to) => to.reclaim()];
  }
  if (counts.crashes === 0) return;
  for (let at = 0; at < world.replicas.length; at++) {
    yield [`${at} crashes`, counted("crashes", (to) => to.crash(at))];
  }
}

function* replicaSteps(world: World, at: number): Generator<Step> {
  const { counts } = world;
  const replica = world.replicas[at];
  if (counts.takes > 0) {
    for (const cost of world.scope.costs) yield [`${at} takes ${cost}`, counted("takes", (to) => to.take(at, cost))];
  }
  if (counts.messages > 0 && world.hasToSend(at)) yield [`${at} sends`, counted("messages", (to) => to.send(at))];
  if (counts.leaves > 0 && world.hasWaiting(at)) {
    yield [`one leaves ${at}`, counted("leaves", (to) => dropFirst(to.at(at).pool.waiting, 1))];
  }
  if (counts.recalls > 0) yield [`${at} is recalled`, counted("recalls", (to) => to.recall(at))];
  if (counts.lulls > 0 && replica?.busy) yield [`${at} calms`, counted("lulls", (to) => (to.at(at).busy = false))];
  if (replica && replica.heardLimit !== world.limit) yield [`${at} hears of it`, (to) => to.hear(at)];
  for (const use of new Map(replica?.uses.map((use) => [`${use.gen}:${use.cost}`, use])).values()) {
    const name = `${use.cost} in ${use.gen}`;
    yield [`${at} is charged ${name}`, (to) => to.charge(at, use)];
    if (counts.refusals > 0) yield [`${at} is refused ${name}`, counted("refusals", (to) => to.refuse(at, use))];
  }
}

function* flightSteps(world: World, index: number): Generator<Step> {
  const { counts, flights } = world;
  const flight = flights[index];
  if (flight === undefined) return;
  const name = `message ${flight.message.number} of ${flight.replica}`;
  if (flight.grant === undefined && !flight.declined) {
    yield [`${name} reaches the ledger`, (to) => to.reach(index)];
    if (counts.merges > 0) yield* mergeSteps(world, index, name);
    if (counts.declines > 0 && !flight.orphan)
      yield [`${name} is declined`, counted("declines", (to) => to.decline(index))];
  } else {
    yield [`${name} is answered`, (to) => to.arrive(index, false)];
    if (counts.copies > 0) {
      yield [`${name} is answered, a copy follows`, counted("copies", (to) => to.arrive(index, true))];
      if (!flight.declined) yield [`${name} reaches the ledger again`, counted("copies", (to) => to.reach(index))];
    }
  }
  if (counts.delays > 0 && !flight.orphan && world.isAwaited(index))
    yield [`${name} is overdue`, counted("delays", (to) => to.delay(index))];
  if (counts.losses > 0 && !flight.orphan) yield [`${name} is given up`, counted("losses", (to) => to.lose(index))];
}

/** With each message of another replica that has not reached the ledger, in either order. */
function* mergeSteps(world: World, index: number, name: string): Generator<Step> {
  const { flights } = world;
  for (let other = 0; other < flights.length; other++) {
    const { replica, grant, declined, message } = flights[other] as Flight;
    if (replica === flights[index]?.replica || grant !== undefined || declined) continue;
    const others = `message ${message.number} of ${replica}`;
    yield [`${name} and ${others} reach the ledger as one`, counted("merges", (to) => to.reachAsOne([index, other]))];
  }
}

function counted(count: Parameters<World["spend"]>[0], apply: (world: World) => void): (world: World) => void {
  return (world) => {
    world.spend(count);
    apply(world);
  };
}

function pathTo(node: Node): string[] {
  const steps: string[] = [];
  for (let at: Node | undefined = node; at; at = at.from) steps.unshift(`${at.world.nowMs} ${at.step}`);
  return steps;
}
