import { exchangePermits, type PermitRule, type PermitWindow, windowMadeAt } from "../../domain/permit-window.ts";
import { limitMax } from "../../domain/rate-limit.ts";
import type { PermitResult, SubjectAsk } from "../permit-ledger.ts";
import { isIntegerIn } from "../sql/read-columns.ts";
import type { Prepare } from "./usage-rows.ts";

/** Settles one ask inside the open transaction. */
export function exchangeAsk(prepare: Prepare, { subject, ...ask }: SubjectAsk, nowMs: number): PermitResult {
  const row = prepare("SELECT * FROM permit_windows WHERE subject = ?").get(subject) as PermitRow | undefined;
  const rule = ask.sentRule ?? storedRule(row);
  if (rule === undefined) return { outcome: "missing" };
  const before = row === undefined ? windowMadeAt(nowMs, rule) : windowOf(row);
  const { window, grant } = exchangePermits(before, ask, rule, nowMs);
  if (row === undefined || !isSame(before, window)) {
    prepare(row === undefined ? insertText : updateText).run(
      window.gen,
      window.endsAtMs,
      window.durationMs,
      window.clampedEndsAtMs,
      window.granted,
      window.spent,
      Number(window.contended),
      subject,
    );
  }
  return { outcome: "settled", ...grant };
}

const updateText = `UPDATE permit_windows SET gen = ?, ends_at_ms = ?, window_duration_ms = ?, clamped_ends_at_ms = ?,
  granted = ?, spent = ?, contended = ? WHERE subject = ?`;
const insertText = `INSERT INTO permit_windows
  (gen, ends_at_ms, window_duration_ms, clamped_ends_at_ms, granted, spent, contended, subject) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`;

type Numbers = "gen" | "ends_at_ms" | "window_duration_ms" | "clamped_ends_at_ms" | "granted" | "spent" | "contended";

interface PermitRow extends Readonly<Record<Numbers, number>> {
  readonly rule_limit: number | null;
  readonly rule_duration_ms: number | null;
}

/** Undefined: the subject has no strict limit, or none that is stored. */
function storedRule(row: PermitRow | undefined): PermitRule | undefined {
  if (row === undefined || row.rule_limit === null) return undefined;
  if (!isIntegerIn(1, row.rule_limit, limitMax) || !isIntegerIn(1, row.rule_duration_ms, Number.MAX_SAFE_INTEGER))
    throw new Error("the stored limit is damaged");
  return { limit: row.rule_limit, durationMs: row.rule_duration_ms as number };
}

/** Throws on a row that this code cannot have written: using it could grant permits above the limit. */
function windowOf(row: PermitRow): PermitWindow {
  if (!isSound(row)) throw new Error("the stored window is damaged");
  return {
    gen: row.gen,
    endsAtMs: row.ends_at_ms,
    durationMs: row.window_duration_ms,
    clampedEndsAtMs: row.clamped_ends_at_ms,
    granted: row.granted,
    spent: row.spent,
    contended: row.contended === 1,
  };
}

function isSound(row: PermitRow): boolean {
  return (
    isIntegerIn(0, row.gen, Number.MAX_SAFE_INTEGER) &&
    isIntegerIn(0, row.ends_at_ms, Number.MAX_SAFE_INTEGER) &&
    isIntegerIn(Math.min(1, row.gen), row.window_duration_ms, row.ends_at_ms) &&
    isIntegerIn(0, row.clamped_ends_at_ms, row.ends_at_ms) &&
    isIntegerIn(0, row.granted, limitMax) &&
    isIntegerIn(0, row.spent, row.granted) &&
    isIntegerIn(0, row.contended, 1)
  );
}

/** A denial changes nothing, so it is not written. */
function isSame(a: PermitWindow, b: PermitWindow): boolean {
  const isSameWindow = a.gen === b.gen && a.clampedEndsAtMs === b.clampedEndsAtMs;
  return isSameWindow && a.granted === b.granted && a.spent === b.spent && a.contended === b.contended;
}
