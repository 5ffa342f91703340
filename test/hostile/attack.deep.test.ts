import { afterAll, describe, expect, it, onTestFinished } from "vitest";
import { SeededRandom } from "../domain/seeded-random.ts";
import { Arena } from "./attack/arena.ts";
import { http1Attacks } from "./attack/http1-attacks.ts";
import { http2Attacks } from "./attack/http2-attacks.ts";
import { slowAttacks, tooSlowAttacks } from "./attack/slow-attacks.ts";
import { startImpatient, startService } from "./attack/victim.ts";
import { isLong, partMs, replay, seedFor, timeoutMs } from "./run-options.ts";

/*
 * Attacks on a whole process. Throughout it stays the same process, holds a bounded amount of memory, answers every
 * whole request, and serves an honest client on other connections right and in time (see attack/judge.ts).
 */

const attackMsInTest = 500;
const attacks = Object.keys({ ...http1Attacks, ...http2Attacks, ...slowAttacks });

/** Closed at the end of the tests around it, or of the test that it is opened in. */
function open(start: ConstructorParameters<typeof Arena>[0], atEnd: (close: () => void) => void): Arena {
  const arena = new Arena(start, console.log);
  atEnd(() => arena.close());
  return arena;
}

if (isLong) attackForLong();
else attackOnce();

function attackOnce(): void {
  describe("latchkey serve", { timeout: timeoutMs }, () => {
    const arena = open(startService, afterAll);
    it.each(attacks)("withstands: %s", async (attack) => {
      expect(await arena.run(attack, seedFor(attack), attackMsInTest), replay).toEqual([]);
    });
  });
}

function attackForLong(): void {
  describe("for as long as was asked for", { timeout: timeoutMs }, () => {
    const victims = {
      "latchkey serve": () => startService(),
      "latchkey serve with two workers": () => startService({ LATCHKEY_WORKERS: "2" }),
      "latchkey serve without its fast path": () => startService({ LATCHKEY_FAST_PATH: "off" }),
      "a service with short time-outs": startImpatient,
    };

    it.each(Object.entries(victims))("%s withstands attacks in any order", async (name, start) => {
      const arena = open(start, onTestFinished);
      const random = new SeededRandom(seedFor(name));
      const choices = start === startImpatient ? [...attacks, ...Object.keys(tooSlowAttacks)] : attacks;
      const untilMs = performance.now() + partMs(0.6, 0) / Object.keys(victims).length;
      const findings: string[] = [];
      for (let round = 0; performance.now() < untilMs; round++) {
        const attack = random.pick(choices);
        findings.push(...(await arena.run(attack, seedFor(attack, round), random.integer(1000, 4000))));
      }
      findings.push(...arena.judgeInAll());
      expect(findings, replay).toEqual([]);
    });
  });
}
