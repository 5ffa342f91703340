import { relative } from "node:path";
import type { Reporter, TestModule, Vitest } from "vitest/node";

/** Lists, after everything else, the tests that did not run and the files that took longest. */
export class Report implements Reporter {
  #vitest: Vitest | undefined;

  onInit(vitest: Vitest): void {
    this.#vitest = vitest;
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    if (this.#vitest?.config.testNamePattern !== undefined) return;
    const root = this.#vitest?.config.root ?? "";
    const nameOf = ({ moduleId }: TestModule) => relative(root, moduleId);
    const slowest = modules
      .map((module) => ({ name: nameOf(module), seconds: Math.round(module.diagnostic().duration / 1000) }))
      .sort((a, b) => b.seconds - a.seconds)
      .slice(0, 10);
    const skipped = modules.flatMap((module) =>
      [...module.children.allTests("skipped")].map((test) => `${nameOf(module)} > ${test.fullName}`),
    );
    // After the summary, which the default reporter prints in the same turn.
    setImmediate(() => {
      if (modules.length > 10) {
        console.log(`The slowest files: ${slowest.map(({ name, seconds }) => `${name} ${seconds} s`).join(", ")}`);
      }
      if (skipped.length > 0) console.log(`Skipped, so not shown:\n${skipped.map((name) => `  ${name}\n`).join("")}`);
    });
  }
}
