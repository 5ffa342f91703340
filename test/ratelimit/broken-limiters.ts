import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { root } from "../support/repository.ts";
import type { Product } from "./simulated-replicas.ts";

/** A plausible mistake in one of the product's files: the original text and its replacement. */
export interface BrokenLimiter {
  readonly mistake: string;
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

const table = "src/domain/window-table.ts";
const rows = "src/domain/window-rows.ts";
const shared = "src/domain/shared-window.ts";
const limiter = "src/ratelimit/local/local-limiter.ts";
const saved = "src/ratelimit/local/saved-windows.ts";

export const brokenLimiters: readonly BrokenLimiter[] = [
  {
    mistake: "lets one more pass than the limit",
    file: rows,
    from: "return Math.max(0, limit - Math.max(mine, all));",
    to: "return Math.max(0, limit + 1 - Math.max(mine, all));",
  },
  {
    mistake: "counts what it refuses",
    file: rows,
    from: "if (left < cost) return left;",
    to: "if (left < cost) { this.#add(slot, column.share, 1); return left; }",
  },
  {
    mistake: "lets a cost pass of which only a part is left",
    file: rows,
    from: "if (left < cost) return left;",
    to: "if (left === 0) return left;",
  },
  {
    mistake: "counts every cost as 1",
    file: rows,
    from: "this.#add(slot, column.mine, cost);",
    to: "this.#add(slot, column.mine, 1);",
  },
  {
    mistake: "gives back 1 of every cost",
    file: rows,
    from: "this.#add(slot, column.share, -cost);",
    to: "this.#add(slot, column.share, -1);",
  },
  {
    mistake: "reports a cost before it is used, less 1",
    file: rows,
    from: "this.#add(slot, column.held, cost);",
    to: "this.#add(slot, column.held, 1);",
  },
  {
    mistake: "tells a caller with a large cost the end of a window that is not in its way",
    file: limiter,
    from: "isAdmitted ? 1 : cost)",
    to: "1)",
  },
  {
    mistake: "moves the end of the window with every request",
    file: rows,
    from: "this.#add(slot, column.mine, cost);",
    to: "this.#add(slot, column.mine, cost); this.#set(slot, column.mineEndsMs, nowMs + rule.durationMs);",
  },
  {
    mistake: "keeps a window open at the moment it ends",
    file: rows,
    from: "const mine = nowMs < this.#get(slot, column.mineEndsMs)",
    to: "const mine = nowMs <= this.#get(slot, column.mineEndsMs)",
  },
  {
    mistake: "tells the end of one full window while another one stands in the way",
    file: rows,
    from: "Math.max(mineEndsMs, shareEndsMs)",
    to: "mineEndsMs",
  },
  {
    mistake: "restarts its own window when it joins the others'",
    file: rows,
    from: "const endsMs = nowMs + news.endsInMs;",
    to: "const endsMs = nowMs + news.endsInMs; this.#set(slot, column.mine, 0);",
  },
  {
    mistake: "ends its own window with the one that it joins",
    file: rows,
    from: "const endsMs = nowMs + news.endsInMs;",
    to: "const endsMs = nowMs + news.endsInMs; this.#set(slot, column.mineEndsMs, endsMs);",
  },
  {
    mistake: "joins what is left of its own last window",
    file: rows,
    from: "if (news.gen !== report.gen && news.replicas > 1) ",
    to: "if (news.gen !== report.gen) ",
  },
  {
    mistake: "takes its share along into a window that it does not belong to",
    file: rows,
    from: "if (!news.counted) ",
    to: "if (news.counted === undefined) ",
  },
  {
    mistake: "gives back in a later window of its own",
    file: rows,
    from: "if (this.#get(slot, column.mineEndsMs) === mineEndsMs) this.#add(slot, column.mine, -cost);",
    to: "if (mineEndsMs > 0) this.#add(slot, column.mine, -cost);",
  },
  {
    mistake: "gives back in a later shared window",
    file: rows,
    from: "if (this.#get(slot, column.epoch) !== epoch) return;",
    to: "",
  },
  {
    mistake: "gives nothing back",
    file: rows,
    from: "this.#add(slot, column.share, -cost);",
    to: "",
  },
  {
    mistake: "reports what is not known to be used",
    file: rows,
    from: "count: this.#get(slot, column.share) - this.#get(slot, column.held),",
    to: "count: this.#get(slot, column.share),",
  },
  {
    mistake: "believes news of a window that is over",
    file: rows,
    from: "if (this.#get(slot, column.gen) !== report.gen || ",
    to: "if (",
  },
  {
    mistake: "keeps the others' count of the window before",
    file: rows,
    from: "this.#set(slot, column.reported, 0);\n    this.#set(slot, column.others, 0);",
    to: "this.#set(slot, column.reported, 0);",
  },
  {
    mistake: "forgets the others when the hub does",
    file: rows,
    from: "const more = Math.max(0, news.others - this.#get(slot, column.others));",
    to: "const more = news.others - this.#get(slot, column.others);",
  },
  {
    mistake: "does not listen to the others",
    file: rows,
    from: "this.#add(slot, column.others, more);",
    to: "",
  },
  {
    mistake: "lets an open window go when the table is full",
    file: table,
    from: "if (share === undefined) return undefined;",
    to: `if (share === undefined) {
      const taken = this.#shares[0] as ApiShare;
      this.#slots.delete(this.#ids[0] as string);
      this.#free.push(0);
      return this.#claim(subject, taken);
    }`,
  },
  {
    mistake: "sweeps open windows away",
    file: table,
    from: 'if (this.#ids[slot] === "" || this.rows.isOpen(slot, nowMs)) continue;',
    to: 'if (this.#ids[slot] === "") continue;',
  },
  {
    mistake: "restores a window without its own count",
    file: rows,
    from: "this.#set(slot, column.mine, saved.mine);",
    to: "",
  },
  {
    mistake: "restores a window without the others' count",
    file: rows,
    from: "this.#set(slot, column.others, saved.others);",
    to: "",
  },
  {
    mistake: "adds what is reported to what was reported before",
    file: shared,
    from: "Math.max(counts.get(report.replica) ?? 0, report.count)",
    to: "(counts.get(report.replica) ?? 0) + report.count",
  },
  {
    mistake: "believes the last report instead of the highest",
    file: shared,
    from: "Math.max(counts.get(report.replica) ?? 0, report.count)",
    to: "report.count",
  },
  {
    mistake: "goes on in a shared window that another replica knows to be over",
    file: shared,
    from: " && kept.gen !== report.previousGen ?",
    to: " ?",
  },
  {
    mistake: "counts time by the wall clock",
    file: limiter,
    from: "const nowMs = this.#clock.monotonicMs();\n    const left = rows.take(slot, rule, nowMs, cost);",
    to: "const nowMs = this.#clock.nowMs();\n    const left = rows.take(slot, rule, nowMs, cost);",
  },
  {
    mistake: "ends saved windows sooner when the clock was set back",
    file: saved,
    from: "Math.max(0, nowMs - header.savedAtMs)",
    to: "Math.abs(nowMs - header.savedAtMs)",
  },
  {
    mistake: "gives saved windows their whole time again",
    file: saved,
    from: "mineEndsInMs: window.mineEndsInMs - goneMs,",
    to: "mineEndsInMs: window.mineEndsInMs,",
  },
];

/** The product with that mistake, from a copy of its files. Throws when the text is not there exactly once. */
export async function loadBroken({ file, from, to }: BrokenLimiter, folder: string): Promise<Product> {
  for (const part of ["src/domain", "src/ratelimit/local"])
    cpSync(join(root, part), join(folder, part), { recursive: true });
  const text = readFileSync(join(folder, file), "utf8");
  if (text.split(from).length !== 2) throw new Error(`${file} has other than once: ${from}`);
  writeFileSync(
    join(folder, file),
    text.replace(from, () => to),
  );
  const load = (path: string) => import(pathToFileURL(join(folder, path)).href);
  return Object.assign(
    {},
    ...(await Promise.all([load(table), load(limiter), load(saved), load("src/ratelimit/local/window-hub.ts")])),
  );
}
