import { proxyBinary } from "../../test/support/proxy-binaries.ts";
import { expectAlike, startGiven } from "../contestants/floors.ts";
import { type GuardedApi, startGuardedApi } from "../contestants/guarded-api.ts";
import { rootKey, startLatchkey } from "../contestants/latchkey.ts";
import { compare } from "../harness/compare.ts";
import type { Bench, Section } from "../harness/section.ts";
import type { Load } from "../loads/load-programs.ts";
import { type Measured, measureInTurns, median } from "../rounds.ts";

type Contestants = "alone" | "floor" | "latchkey";

const titles: Readonly<Record<Contestants, string>> = {
  alone: "nginx alone",
  floor: "nginx that asks bare `node:http`",
  latchkey: "nginx that asks Latchkey",
};
/** What the documented configuration asks for. */
const keyProperties = { apiId: "demo", permissions: ["docs.read"] };
const question = "/v1/authz?apiId=demo&permissions=docs.read&ipHeader=X-Real-IP";

/** Three servers share a core, so the compiler has seen enough requests only after a longer warm-up. */
const warmUps = 3;

export const proxies: Section<"alone" | "floor" | "floorCpu" | "asked" | "micros" | "addedMicros"> = {
  title: "Proxies",
  how: "nginx with one worker process in front of a bare `node:http` API that answers six bytes; one cached key, embedded store, 32 connections that are kept. The configuration is that of [nginx](nginx.md); nginx alone has it without the line `auth_request /_latchkey;`. Latchkey demands a root key of nginx. The floor answers 200 with the same headers, without a decision. nginx, the API and the server that nginx asks share one core, so the throughput and the processor time are those of all three; one request at a time is one connection (wrk), the median of the rounds' medians.",
  goals: {
    alone: { what: "nginx that asks Latchkey, beside nginx alone", unit: "×" },
    floor: { what: "nginx that asks Latchkey, beside nginx that asks bare `node:http`", unit: "×", atLeast: 0.9 },
    floorCpu: { what: "the same by the processor time of all three servers", unit: "×", atLeast: 0.9 },
    asked: { what: "by the processor time of the server that nginx asks alone", unit: "×" },
    micros: { what: "processor time that asking Latchkey adds to a request, nginx's part included", unit: "µs" },
    addedMicros: { what: "what asking Latchkey adds to the p50 of one request at a time", unit: "µs" },
  },
  async measure(bench) {
    const nginx = proxyBinary("nginx");
    if (nginx === undefined) {
      const names = ["alone", "floor", "floorCpu", "asked", "micros", "addedMicros"] as const;
      const figures = Object.fromEntries(names.map((name) => [name, notHere])) as Record<
        (typeof names)[number],
        string
      >;
      return { text: ["nginx cannot be had on this machine: nothing was measured."], figures };
    }
    const { servers, key } = await startContestants(bench, nginx);
    const tallies = ofEach((name) => tally(bench.loads.guarded(servers[name].port, key), servers[name]));
    const { table, ratio, cpuRatio, cpuMicros } = await compare(
      this.title,
      ofEach((name) => ({ title: titles[name], server: servers[name], load: tallies[name].load })),
      { ...bench.turns, warmUpMs: warmUps * bench.turns.warmUpMs },
    );
    const latencies = await measureInTurns(
      ofEach((name) => bench.loads.guardedLatencyMicros(servers[name].port, key)),
      { ...bench.turns, warmUpMs: 1000 },
    );
    return {
      text: [table, describeParts(tallies), describeLatencies(latencies)],
      figures: {
        alone: ratio("latchkey", "alone"),
        floor: ratio("latchkey", "floor"),
        floorCpu: cpuRatio("latchkey", "floor"),
        asked: (tallies.floor.microsOf("asked") as number) / (tallies.latchkey.microsOf("asked") as number),
        micros: cpuMicros.latchkey - cpuMicros.alone,
        addedMicros: latencies.latchkey.median - latencies.alone.median,
      },
    };
  },
};

const notHere = "no nginx here";

async function startContestants(bench: Bench, nginx: string) {
  const latchkey = await startLatchkey(bench, { environment: { LATCHKEY_VERIFY_AUTH: "required" } });
  const key = await latchkey.createKey(keyProperties);
  const api = await startGiven(bench, { headers: { "content-type": "text/plain" }, body: "served" });
  const ask = (port: number) =>
    fetch(`http://127.0.0.1:${port}${question}`, {
      headers: { authorization: `Bearer ${key}`, "x-latchkey-root-key": rootKey },
    });
  const floor = await startGiven(bench, { headers: headersOf(await ask(latchkey.port)), body: "" });
  await expectAlike(floor.port, latchkey.port, ask);
  const servers = {
    alone: await startGuardedApi(bench, { nginx, api }),
    floor: await startGuardedApi(bench, { nginx, api, asked: floor }),
    latchkey: await startGuardedApi(bench, { nginx, api, asked: latchkey }),
  };
  for (const { port } of Object.values(servers)) await expectStatus(port, 200, { authorization: `Bearer ${key}` });
  // Only Latchkey refuses.
  await expectStatus(servers.alone.port, 200);
  await expectStatus(servers.floor.port, 200);
  await expectStatus(servers.latchkey.port, 401);
  return { servers, key };
}

/** Without those that Node adds by itself. */
function headersOf(response: Response): Record<string, string> {
  const ofNode = ["date", "connection", "keep-alive"];
  return Object.fromEntries([...response.headers].filter(([name]) => !ofNode.includes(name)));
}

async function expectStatus(port: number, expected: number, headers: Record<string, string> = {}): Promise<void> {
  const response = await fetch(`http://127.0.0.1:${port}/`, { headers });
  const text = await response.text();
  if (response.status !== expected) throw new Error(`nginx answered ${response.status}, not ${expected}: ${text}`);
}

function ofEach<Value>(make: (name: Contestants) => Value): Record<Contestants, Value> {
  return { alone: make("alone"), floor: make("floor"), latchkey: make("latchkey") };
}

type Part = keyof GuardedApi["parts"];

interface Tally {
  readonly load: Load;
  /** The processor time that each request took of this part, median of the rounds; undefined if there is no such part. */
  microsOf(part: Part): number | undefined;
}

/** The same load. Remembers what each round took of each part. */
function tally(load: Load, { parts }: GuardedApi): Tally {
  const micros: Record<Part, number[]> = { nginx: [], api: [], asked: [] };
  const cpuMsOf = (part: Part) => parts[part]?.cpuMs() ?? 0;
  return {
    async load(ms) {
      const before = { nginx: cpuMsOf("nginx"), api: cpuMsOf("api"), asked: cpuMsOf("asked") };
      const served = await load(ms);
      for (const part of Object.keys(micros) as Part[]) {
        micros[part].push(((cpuMsOf(part) - before[part]) * 1000) / served.count);
      }
      return served;
    },
    // The first was the warm-up.
    microsOf: (part) => (parts[part] === undefined ? undefined : median(micros[part].slice(1))),
  };
}

function describeParts(tallies: Readonly<Record<Contestants, Tally>>): string {
  const lines = (Object.keys(titles) as Contestants[]).map((name) => {
    const cells = (["nginx", "api", "asked"] as const).map((part) => tallies[name].microsOf(part)?.toFixed(1) ?? "");
    return `| ${titles[name]} | ${cells.join(" | ")} |`;
  });
  return ["| CPU µs of each part | nginx | API | asked |", "|---|---|---|---|", ...lines].join("\n");
}

function describeLatencies(latencies: Readonly<Record<Contestants, Measured>>): string {
  const lines = (Object.keys(titles) as Contestants[]).map((name) => {
    const { median, spread } = latencies[name];
    return `| ${titles[name]} | ${median} | ${spread.join("–")} | ${(median / latencies.alone.median).toFixed(2)} × |`;
  });
  return ["| one request at a time | p50 µs | spread | ratio |", "|---|---|---|---|", ...lines].join("\n");
}
