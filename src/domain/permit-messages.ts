import { PermitDemand } from "./permit-demand.ts";
import type { PermitMessage } from "./permit-verdict.ts";

/** Which messages of a pool are under way: the one that it waits for, and one beside it that is overdue. */
export class PermitMessages extends PermitDemand {
  /** The number of the last message that was made. */
  protected lastMessageNumber = 0;
  /** The message that the pool waits for before it makes another. 0: none. */
  protected currentNumber = 0;
  /** A message under way that the pool does not wait for, because its answer is overdue. 0: none. */
  protected overdueNumber = 0;
  /** The last message that was under way together with another. */
  protected overlapNumber = 0;

  /** The answer is late. Another message may be sent another way; an answer to this one is still taken. */
  overdue(message: PermitMessage): void {
    if (message.number !== this.currentNumber || this.overdueNumber !== 0) return;
    this.overdueNumber = this.currentNumber;
    this.currentNumber = 0;
  }

  protected get hasMessages(): boolean {
    return this.currentNumber !== 0 || this.overdueNumber !== 0;
  }

  /** Answers the number of the new message. */
  protected startMessage(): number {
    this.lastMessageNumber++;
    this.currentNumber = this.lastMessageNumber;
    if (this.overdueNumber !== 0) this.overlapNumber = this.currentNumber;
    return this.currentNumber;
  }

  protected isUnderWay({ number }: PermitMessage): boolean {
    return number === this.currentNumber || number === this.overdueNumber;
  }

  protected endMessage({ number }: PermitMessage): void {
    if (number === this.currentNumber) this.currentNumber = 0;
    if (number === this.overdueNumber) this.overdueNumber = 0;
  }

  protected endAllMessages(): void {
    this.currentNumber = 0;
    this.overdueNumber = 0;
  }

  /** Whether no other message was under way at the same time as this one, and none was made after it. */
  protected wasAlone({ number }: PermitMessage): boolean {
    return number > this.overlapNumber && number === this.lastMessageNumber;
  }
}
