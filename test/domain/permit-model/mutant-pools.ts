import { PermitPool } from "../../../src/domain/permit-pool.ts";
import type { PermitMessage, PermitVerdict } from "../../../src/domain/permit-verdict.ts";
import type { PermitGrant } from "../../../src/domain/permit-window.ts";

/* The replica's side with one thing wrong. */

export function SpendsOne(): typeof PermitPool {
  return class extends PermitPool {
    protected override use(count: number): void {
      super.use(count);
      this.held += Math.max(0, count - 1);
    }
  };
}

export function ReleasesOne(): typeof PermitPool {
  return class extends PermitPool {
    override release(gen: number, nowMs: number): PermitVerdict {
      return super.release(gen, nowMs, 1);
    }
  };
}

export function Hoards(): typeof PermitPool {
  return class extends PermitPool {
    protected override surplus(needed: number, fetching: boolean, nowMs: number): number {
      return this.waiting.length > 0 ? 0 : super.surplus(needed, fetching, nowMs);
    }
  };
}

export function DeniesSmaller(): typeof PermitPool {
  return class extends PermitPool {
    protected override rememberDenial(_above: number, untilMs: number, nowMs: number): void {
      super.rememberDenial(0, untilMs, nowMs);
    }
    protected override noteReach(): void {}
  };
}

export function TrustsClock(): typeof PermitPool {
  return class extends PermitPool {
    override answered(message: PermitMessage, grant: PermitGrant, nowMs: number): PermitVerdict {
      return super.answered(message, { ...grant, clockBehind: false }, nowMs);
    }
  };
}

export function ZeroAfterSend(): typeof PermitPool {
  return class extends PermitPool {
    override nextAsk(nowMs: number): PermitMessage | undefined {
      const message = super.nextAsk(nowMs);
      this.held += message?.ask.returned ?? 0;
      return message;
    }
    override answered(message: PermitMessage, grant: PermitGrant, nowMs: number): PermitVerdict {
      this.held = Math.max(0, this.held - message.ask.returned);
      return super.answered(message, grant, nowMs);
    }
  };
}

export function CreditsLost(): typeof PermitPool {
  return class extends PermitPool {
    override lost(message: PermitMessage, nowMs: number): void {
      if (message.ask.gen === this.gen) this.held += message.ask.returned;
      super.lost(message, nowMs);
    }
  };
}

export function CountsCopies(): typeof PermitPool {
  return class extends PermitPool {
    protected override isUnderWay(): boolean {
      return true;
    }
  };
}

export function CountsRefusalTwice(): typeof PermitPool {
  return class extends PermitPool {
    override notExecuted(message: PermitMessage, nowMs: number): PermitVerdict {
      this.overdueNumber = message.number;
      return super.notExecuted(message, nowMs);
    }
  };
}

export function CreditsAnyWindow(): typeof PermitPool {
  return class extends PermitPool {
    override notExecuted(message: PermitMessage, nowMs: number): PermitVerdict {
      return super.notExecuted({ ...message, ask: { ...message.ask, gen: this.gen } }, nowMs);
    }
  };
}

export function TakesBackOverdue(): typeof PermitPool {
  return class extends PermitPool {
    override overdue(message: PermitMessage): void {
      if (message.ask.gen === this.gen) this.held += message.ask.returned;
      super.overdue(message);
    }
  };
}

export function RepeatsOverdue(): typeof PermitPool {
  return class extends PermitPool {
    protected overdueReturn = 0;
    override overdue(message: PermitMessage): void {
      this.overdueReturn = message.ask.returned;
      super.overdue(message);
    }
    override nextAsk(nowMs: number): PermitMessage | undefined {
      const message = super.nextAsk(nowMs);
      const { overdueReturn } = this;
      if (message === undefined || overdueReturn === 0) return message;
      this.overdueReturn = 0;
      return { ...message, ask: { ...message.ask, returned: message.ask.returned + overdueReturn } };
    }
  };
}

export function CreditsLaterWindow(): typeof PermitPool {
  return class extends PermitPool {
    override answered(message: PermitMessage, grant: PermitGrant, nowMs: number): PermitVerdict {
      const isOlder = message.number !== this.lastMessageNumber && grant.gen < this.gen;
      return super.answered(
        message,
        isOlder ? { ...grant, gen: this.gen, endsInMs: 1000, durationMs: 1000 } : grant,
        nowMs,
      );
    }
  };
}

export function TrustsOverlap(): typeof PermitPool {
  return class extends PermitPool {
    protected override heldElsewhere(_message: PermitMessage, { outstanding }: PermitGrant): number {
      return outstanding - this.held - this.inUse - this.spent;
    }
  };
}

export function DropsOverdue(): typeof PermitPool {
  return class extends PermitPool {
    override overdue(message: PermitMessage): void {
      if (message.number === this.currentNumber) this.currentNumber = 0;
    }
  };
}

export function LosesDeclined(): typeof PermitPool {
  return class extends PermitPool {
    override notExecuted(message: PermitMessage, nowMs: number): PermitVerdict {
      this.lost(message, nowMs);
      return this.verdict([]);
    }
  };
}

export function GivesBackAnywhere(): typeof PermitPool {
  return class extends PermitPool {
    override release(_gen: number, nowMs: number, cost: number): PermitVerdict {
      if (this.isOpen(nowMs)) this.held += cost;
      return this.verdict(this.admitWaiting());
    }
  };
}

export function EndsFromReceipt(): typeof PermitPool {
  return class extends PermitPool {
    protected override expiry(_message: PermitMessage, grant: PermitGrant, nowMs: number): number {
      return nowMs + grant.endsInMs * 0.999;
    }
  };
}

export function KeepsForEver(): typeof PermitPool {
  return class extends PermitPool {
    protected override isOpen(): boolean {
      return this.gen > 0;
    }
  };
}

export function AcceptsLate(): typeof PermitPool {
  return class extends PermitPool {
    protected override expiry(message: PermitMessage, grant: PermitGrant, nowMs: number): number {
      return Math.max(super.expiry(message, grant, nowMs), nowMs + 1);
    }
  };
}

export function DeniesTooSoon(): typeof PermitPool {
  return class extends PermitPool {
    protected override heldElsewhere(): number {
      return 0;
    }
  };
}

export function NeverTidies(): typeof PermitPool {
  return class extends PermitPool {
    protected override nextReturnMs(): number {
      return Number.POSITIVE_INFINITY;
    }
  };
}

export function ReportsEarly(): typeof PermitPool {
  return class extends PermitPool {
    override nextAsk(nowMs: number): PermitMessage | undefined {
      this.commit(this.gen, this.inUse);
      return super.nextAsk(nowMs);
    }
  };
}

export function KeepsOutdated(): typeof PermitPool {
  return class extends PermitPool {
    protected override outdateAll(): void {}
  };
}

export function TrustsOldAnswer(): typeof PermitPool {
  return class extends PermitPool {
    protected override addGranted(_message: PermitMessage, granted: number): void {
      this.held += granted;
    }
  };
}

export function ReusesOutdated(): typeof PermitPool {
  return class extends PermitPool {
    protected override outdateAll(): void {
      super.outdateAll();
      this.outdatedInUse = 0;
    }
  };
}

export function RestoresOutdated(): typeof PermitPool {
  return class extends PermitPool {
    protected override restore({ ask }: PermitMessage): void {
      this.held += ask.returned;
      this.spent += ask.spent;
    }
  };
}

export function DropsOutdated(): typeof PermitPool {
  return class extends PermitPool {
    protected override outdateAll(): void {
      this.held = 0;
    }
  };
}
