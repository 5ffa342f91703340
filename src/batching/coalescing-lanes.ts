import type { Ambient } from "../ambient/ambient.ts";
import type { MaybePromise } from "../domain/maybe-promise.ts";
import { GroupCommit } from "./group-commit.ts";

/** Most subjects of one commit, and most subjects waiting behind it in one lane. */
const laneBounds = { batchMax: 500, queueMax: 50_000 };

/** All callers of one subject that go into one commit, in the order in which they came. */
export interface SubjectGroup<Item> {
  readonly subject: string;
  readonly callers: readonly { readonly item: Item }[];
}

/** Bounds how many callers wait. */
export interface WaitingLimit {
  /** Takes a place for one caller, or answers why there is none. `sameSubject`: callers of the same subject that already wait. */
  enter(sameSubject: number): Error | undefined;
  leave(count: number): void;
}

export interface CoalescingLanesOptions<Item, Result, Answer> extends Pick<Ambient, "clock" | "metrics"> {
  /** Name in the metrics. */
  readonly name: string;
  /**
   * One for each lane. Commits the groups as one and answers one result per group, in order; throws if the outcome
   * of all is unknown. No subject appears twice in one call.
   */
  readonly commits: readonly ((groups: readonly SubjectGroup<Item>[]) => Promise<readonly Result[]>)[];
  /**
   * What a group's result means for each of its callers, in order; a rejected promise fails that caller alone. If it throws,
   * every caller of the group gets that error.
   */
  readonly splitResult: (group: SubjectGroup<Item>, result: Result) => readonly MaybePromise<Answer>[];
  readonly waitingLimit: WaitingLimit;
  /** Bounds the work that the callers of one group, and all groups of one commit, can be. Default: callers cost no work. */
  readonly weight?: GroupWeight<Item> | undefined;
  readonly bounds?: typeof laneBounds;
}

export interface GroupWeight<Item> {
  /** What a caller adds to the work for its group, behind the caller before it. */
  readonly of: (item: Item, before: Item | undefined) => number;
  /** Of one group. Callers beyond it wait for the next commit. A caller that weighs more goes alone. */
  readonly groupMax: number;
  /** Of all groups of one commit. */
  readonly commitMax: number;
}

/**
 * Answers any number of callers with few commits: all callers of a subject that wait become one group, and many subjects share one
 * commit. A busy subject thus costs one row per commit, however many callers it has. A subject always goes to the same lane, and
 * each lane has one batch under way.
 */
export class CoalescingLanes<Item, Result, Answer> {
  readonly #lanes: readonly Lane<Item, Result, Answer>[];
  /** Groups not yet sent, by subject: more callers of the subject may still join them. */
  readonly #joinable = new Map<string, WaitingGroup<Item, Answer>>();
  readonly #name: string;
  readonly #waitingLimit: WaitingLimit;
  readonly #splitResult: CoalescingLanesOptions<Item, Result, Answer>["splitResult"];
  readonly #weight: GroupWeight<Item> | undefined;

  constructor(options: CoalescingLanesOptions<Item, Result, Answer>) {
    const { name, commits, waitingLimit, splitResult, weight, clock, metrics, bounds = laneBounds } = options;
    this.#name = name;
    this.#waitingLimit = waitingLimit;
    this.#splitResult = splitResult;
    this.#weight = weight;
    const commitWeight = weight && { of: ({ weight }: WaitingGroup<Item, Answer>) => weight, max: weight.commitMax };
    this.#lanes = commits.map((commit) => {
      const send = (groups: readonly WaitingGroup<Item, Answer>[]) => {
        for (const group of groups) {
          this.#joinable.delete(group.subject);
          if (group.behind !== undefined) this.#sendNext(group.behind);
        }
        return commit(groups);
      };
      return new GroupCommit({ ...bounds, name, commit: send, weight: commitWeight, clock, metrics });
    });
  }

  /** Rejects when there is no place or the lane's queue is full, otherwise with what a commit or `splitResult` threw. */
  submit(subject: string, item: Item): Promise<Answer> {
    const joinable = this.#joinable.get(subject);
    const refusal = this.#waitingLimit.enter(joinable === undefined ? 0 : waitingIn(joinable));
    if (refusal !== undefined) return Promise.reject(refusal);
    return new Promise((resolve, reject) => {
      const caller = { item, resolve, reject };
      if (joinable === undefined)
        this.#send({ subject, callers: [caller], weight: this.#weightOf(item), behind: undefined });
      else this.#join(joinable, caller);
    });
  }

  /** Resolves when nothing is queued or under way: every caller so far has an answer. */
  async drained(): Promise<void> {
    await Promise.all(this.#lanes.map((lane) => lane.drained()));
  }

  #weightOf(item: Item, before?: Item): number {
    return this.#weight === undefined ? 1 : this.#weight.of(item, before);
  }

  /** Adds the caller to the last group of the subject, or to a new one behind it if that one has work enough. */
  #join(joinable: WaitingGroup<Item, Answer>, caller: Caller<Item, Answer>): void {
    const last = joinable.behind?.groups.at(-1) ?? joinable;
    const weight = this.#weight === undefined ? 0 : this.#weight.of(caller.item, last.callers.at(-1)?.item);
    if (this.#weight === undefined || last.weight + weight <= this.#weight.groupMax) {
      last.callers.push(caller);
      last.weight += weight;
    } else {
      joinable.behind ??= { groups: [], waiting: 0 };
      const { subject } = joinable;
      joinable.behind.groups.push({
        subject,
        callers: [caller],
        weight: this.#weightOf(caller.item),
        behind: undefined,
      });
    }
    if (joinable.behind !== undefined) joinable.behind.waiting++;
  }

  /** The group before was sent: the next one goes into a later commit, because no subject appears twice in one. */
  #sendNext(behind: GroupsBehind<Item, Answer>): void {
    const next = behind.groups.shift();
    if (next === undefined) return;
    behind.waiting -= next.callers.length;
    if (behind.groups.length > 0) next.behind = behind;
    this.#send(next);
  }

  #send(group: WaitingGroup<Item, Answer>): void {
    const { subject, callers } = group;
    this.#joinable.set(subject, group);
    const lane = this.#lanes[laneOf(subject, this.#lanes.length)] as Lane<Item, Result, Answer>;
    lane.submit(group).then(
      (result) => {
        this.#waitingLimit.leave(callers.length);
        this.#answer(group, result);
      },
      (error: unknown) => {
        // It may never have been sent: the queue was full, or the batch before it failed.
        const isUnsent = this.#joinable.get(subject) === group;
        if (isUnsent) this.#joinable.delete(subject);
        for (const { callers } of isUnsent ? [group, ...(group.behind?.groups ?? [])] : [group]) {
          this.#waitingLimit.leave(callers.length);
          for (const caller of callers) caller.reject(error);
        }
      },
    );
  }

  #answer(group: WaitingGroup<Item, Answer>, result: Result): void {
    const { callers } = group;
    try {
      const answers = this.#splitResult(group, result);
      if (answers.length !== callers.length)
        throw new Error(`${this.#name}: ${answers.length} answers for ${callers.length} callers`);
      callers.forEach((caller, i) => {
        caller.resolve(answers[i] as MaybePromise<Answer>);
      });
    } catch (error) {
      for (const caller of callers) caller.reject(error);
    }
  }
}

type Lane<Item, Result, Answer> = GroupCommit<WaitingGroup<Item, Answer>, Result>;

interface WaitingGroup<Item, Answer> extends SubjectGroup<Item> {
  readonly callers: Caller<Item, Answer>[];
  weight: number;
  /** Those that did not fit into this group. */
  behind: GroupsBehind<Item, Answer> | undefined;
}

interface GroupsBehind<Item, Answer> {
  readonly groups: WaitingGroup<Item, Answer>[];
  /** The callers of all of them. */
  waiting: number;
}

function waitingIn<Item, Answer>({ callers, behind }: WaitingGroup<Item, Answer>): number {
  return callers.length + (behind?.waiting ?? 0);
}

interface Caller<Item, Answer> {
  readonly item: Item;
  readonly resolve: (answer: MaybePromise<Answer>) => void;
  readonly reject: (error: unknown) => void;
}

/** The number of the subject's lane, below `lanes`. Always the same for a subject. */
export function laneOf(subject: string, lanes: number): number {
  let hash = 0;
  for (let i = 0; i < subject.length; i++) hash = (Math.imul(hash, 31) + subject.charCodeAt(i)) | 0;
  return (hash >>> 0) % lanes;
}
