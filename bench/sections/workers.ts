import { startFloor } from "../contestants/floors.ts";
import { startLatchkey } from "../contestants/latchkey.ts";
import { compare } from "../harness/compare.ts";
import type { Section } from "../harness/section.ts";

export const workers: Section<"gain"> = {
  title: "Two workers",
  how: "One cached key, embedded store, 64 connections. Nothing is pinned here: servers and load share all cores, for all four alike, so on two cores the gains are less than two workers could reach.",
  goals: {
    gain: { what: "gain of two workers, beside the gain of bare `node:http` (`reusePort`)", unit: "×", atLeast: 0.9 },
  },
  async measure(bench) {
    const start = (workers: number) =>
      startLatchkey(bench, { pinned: false, environment: { LATCHKEY_WORKERS: `${workers}` } });
    const [one, two] = [await start(1), await start(2)];
    const [oneKey, twoKey] = [await one.createKey(), await two.createKey()];
    const answer = await one.verify(oneKey);
    const [oneFloor, twoFloor] = [
      await startFloor(bench, "http", answer, { pinned: false }),
      await startFloor(bench, "http-threads", answer, { pinned: false }),
    ];
    const loadOn = ({ port }: { port: number }, key: string) =>
      bench.loads.json(port, key, { connections: 64, pinned: false });
    const { table, ratio } = await compare(
      this.title,
      {
        oneFloor: { title: "bare `node:http`, one thread", server: oneFloor, load: loadOn(oneFloor, oneKey) },
        twoFloor: { title: "bare `node:http`, two threads", server: twoFloor, load: loadOn(twoFloor, oneKey) },
        one: { title: "Latchkey, one process", server: one, load: loadOn(one, oneKey) },
        two: { title: "Latchkey, two workers", server: two, load: loadOn(two, twoKey) },
      },
      bench.turns,
    );
    const [gain, floorGain] = [ratio("two", "one"), ratio("twoFloor", "oneFloor")];
    const said = `Two workers gain ${gain.toFixed(2)} × in Latchkey, ${floorGain.toFixed(2)} × in bare \`node:http\` with two threads.`;
    return { text: [table, said], figures: { gain: gain / floorGain } };
  },
};
