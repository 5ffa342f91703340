import { holderOfLimit } from "../../domain/subject.ts";

/** The subjects of limits with names, by the key or owner that has the limit. Others are not kept. */
export class SubjectsByHolder {
  readonly #subjects = new Map<string, Set<string>>();

  add(subject: string): void {
    const holder = holderOfLimit(subject);
    if (holder === undefined) return;
    const subjects = this.#subjects.get(holder);
    if (subjects === undefined) this.#subjects.set(holder, new Set([subject]));
    else subjects.add(subject);
  }

  delete(subject: string): void {
    const holder = holderOfLimit(subject);
    const subjects = holder === undefined ? undefined : this.#subjects.get(holder);
    subjects?.delete(subject);
    if (holder !== undefined && subjects?.size === 0) this.#subjects.delete(holder);
  }

  of(holder: string): Iterable<string> {
    return this.#subjects.get(holder) ?? [];
  }
}
