import type { Ambient } from "../ambient/ambient.ts";
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
  /** What a group's result means for each of its callers, in order. If it throws, every caller of the group gets that error. */
  readonly splitResult: (group: SubjectGroup<Item>, result: Result) => readonly Answer[];
  readonly waitingLimit: WaitingLimit;
  readonly bounds?: typeof laneBounds;
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
  readonly #splitResult: (group: SubjectGroup<Item>, result: Result) => readonly Answer[];

  constructor(options: CoalescingLanesOptions<Item, Result, Answer>) {
    const { name, commits, waitingLimit, splitResult, clock, metrics, bounds = laneBounds } = options;
    this.#name = name;
    this.#waitingLimit = waitingLimit;
    this.#splitResult = splitResult;
    this.#lanes = commits.map((commit) => {
      const send = (groups: readonly WaitingGroup<Item, Answer>[]) => {
        for (const { subject } of groups) this.#joinable.delete(subject);
        return commit(groups);
      };
      return new GroupCommit({ ...bounds, name, commit: send, clock, metrics });
    });
  }

  /** Rejects when there is no place or the lane's queue is full, otherwise with what a commit or `splitResult` threw. */
  submit(subject: string, item: Item): Promise<Answer> {
    const joinable = this.#joinable.get(subject);
    const refusal = this.#waitingLimit.enter(joinable?.callers.length ?? 0);
    if (refusal !== undefined) return Promise.reject(refusal);
    return new Promise((resolve, reject) => {
      const caller = { item, resolve, reject };
      if (joinable === undefined) this.#send({ subject, callers: [caller] });
      else joinable.callers.push(caller);
    });
  }

  /** Resolves when nothing is queued or under way: every caller so far has an answer. */
  async drained(): Promise<void> {
    await Promise.all(this.#lanes.map((lane) => lane.drained()));
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
        if (this.#joinable.get(subject) === group) this.#joinable.delete(subject);
        this.#waitingLimit.leave(callers.length);
        for (const caller of callers) caller.reject(error);
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
        caller.resolve(answers[i] as Answer);
      });
    } catch (error) {
      for (const caller of callers) caller.reject(error);
    }
  }
}

type Lane<Item, Result, Answer> = GroupCommit<WaitingGroup<Item, Answer>, Result>;

interface WaitingGroup<Item, Answer> extends SubjectGroup<Item> {
  readonly callers: Caller<Item, Answer>[];
}

interface Caller<Item, Answer> {
  readonly item: Item;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

/** The number of the subject's lane, below `lanes`. Always the same for a subject. */
export function laneOf(subject: string, lanes: number): number {
  let hash = 0;
  for (let i = 0; i < subject.length; i++) hash = (Math.imul(hash, 31) + subject.charCodeAt(i)) | 0;
  return (hash >>> 0) % lanes;
}
