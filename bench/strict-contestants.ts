import { Redis } from "ioredis";
import pg from "pg";
import { type RateLimiterAbstract, RateLimiterPostgres, RateLimiterRedis, RateLimiterRes } from "rate-limiter-flexible";
import { systemClock } from "../src/ambient/clock.ts";
import { createLog } from "../src/ambient/log.ts";
import { createMetrics } from "../src/ambient/metrics.ts";
import { RemoteCore } from "../src/core/remote/remote-core.ts";
import { Secret } from "../src/domain/secret.ts";
import { WaitingRoom } from "../src/domain/waiting-room.ts";
import type { PermitChannel } from "../src/ratelimit/permit-channel.ts";
import { StrictLimiter } from "../src/ratelimit/strict/strict-limiter.ts";

export const contestantNames = ["latchkey", "oneByOne", "flexiblePostgres", "flexibleRedis"] as const;
export type ContestantName = (typeof contestantNames)[number];

/** What a region reaches its data by: each is a link of the region's own length. */
/** What the coordinator and its edges share. */
export const benchInternalSecret = "internal-secret-of-the-benchmark-0123";

export interface RegionLinks {
  readonly coordinatorPort: number;
  readonly databaseUrl: string;
  readonly redisPort: number;
}

export interface Rule {
  readonly limit: number;
  readonly durationMs: number;
}

/** Whether one verification passed, and when its window ends: by that, windows are told apart. */
export interface Decision {
  readonly admitted: boolean;
  readonly endsAtMs: number;
}

export interface Contestant {
  /** Decides about one verification of the key, synchronously if it can. */
  verify(key: string, rule: Rule): Decision | Promise<Decision>;
  /** Messages that went to where the truth is, so far. */
  readonly sent: number;
}

/** Of a region. Many more make a hot row slower, for all of them queue for its lock. */
const connections = 50;

/** All contestants of one region, connected. */
export async function connectContestants(links: RegionLinks): Promise<Record<ContestantName, Contestant>> {
  const pool = new pg.Pool({ connectionString: links.databaseUrl, max: connections, idleTimeoutMillis: 0 });
  await Promise.all(Array.from({ length: connections }, () => pool.query("SELECT pg_sleep(0.2)")));
  const redis = new Redis({ host: "127.0.0.1", port: links.redisPort });
  await redis.ping();
  return {
    latchkey: await latchkey(links.coordinatorPort),
    oneByOne: oneByOne(pool),
    flexiblePostgres: flexible((rule, onSent) => {
      const query = (text: pg.QueryConfig) => {
        onSent();
        return pool.query(text);
      };
      const table = { tableName: "flexible_windows", tableCreated: true, clearExpiredByTimeout: false };
      return new RateLimiterPostgres({ ...rule, ...table, storeClient: { query }, storeType: "pool" });
    }),
    flexibleRedis: flexible((rule, onSent) => {
      const limiter = new RateLimiterRedis({ ...rule, storeClient: redis });
      // Its script, which it has just defined again.
      const commands = redis as unknown as { rlflxIncr: (...args: unknown[]) => unknown };
      const increment = commands.rlflxIncr.bind(redis);
      commands.rlflxIncr = (...args) => {
        onSent();
        return increment(...args);
      };
      return limiter;
    }),
  };
}

/** An edge's own objects, as the server puts them together. */
async function latchkey(port: number): Promise<Contestant> {
  const waitingRoom = new WaitingRoom(50_000);
  const core = new RemoteCore({
    addresses: [`127.0.0.1:${port}`],
    credentials: () => ({ secret: new Secret(benchInternalSecret) }),
    waitingRoom,
    onOldAnswer: () => {},
    onChanged: async () => {},
    clock: systemClock,
    log: createLog("warn", (line) => process.stderr.write(line)),
  });
  let sent = 0;
  const permits = core.joinPermits((keyId) => limiter.recall(keyId));
  const channel: PermitChannel = {
    exchange(keyId, ask, options) {
      sent++;
      return permits.exchange(keyId, ask, options);
    },
    inspect: (keyId) => permits.inspect(keyId),
    close: () => core.close(),
  };
  const limiter: StrictLimiter = new StrictLimiter({
    channel,
    clock: systemClock,
    metrics: createMetrics(),
    freeStandingMax: 1000,
    poolsMax: 1000,
    timeoutMs: () => 450,
    waitingRoom,
  });
  await core.usable;
  const toDecision = (permit: Awaited<ReturnType<StrictLimiter["take"]>>): Decision => {
    permit.commit();
    return { admitted: permit.outcome === "admitted", endsAtMs: permit.resetMs };
  };
  return {
    get sent() {
      return sent;
    },
    verify(key, rule) {
      const permit = limiter.take(key, { mode: "strict", ...rule });
      return permit instanceof Promise ? permit.then(toDecision) : toDecision(permit);
    },
  };
}

/** Each verification is one statement on the key's row. */
function oneByOne(pool: pg.Pool): Contestant {
  const now = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";
  const text = `UPDATE plain_windows SET
    used = CASE WHEN ends_at <= ${now} THEN 1 ELSE used + 1 END,
    ends_at = CASE WHEN ends_at <= ${now} THEN ${now} + $3 ELSE ends_at END
    WHERE key = $1 AND (ends_at <= ${now} OR used < $2) RETURNING ends_at`;
  let sent = 0;
  return {
    get sent() {
      return sent;
    },
    async verify(key, { limit, durationMs }) {
      sent++;
      const { rows } = await pool.query({ name: "verify", text, values: [key, limit, durationMs] });
      return { admitted: rows.length > 0, endsAtMs: Number(rows[0]?.ends_at) };
    },
  };
}

interface FlexibleRule {
  readonly points: number;
  readonly duration: number;
  readonly inMemoryBlockOnConsumed: number;
}

/** rate-limiter-flexible, with the option that spares it the refused ones: they are settled in memory. */
function flexible(create: (rule: FlexibleRule, onSent: () => void) => RateLimiterAbstract): Contestant {
  let sent = 0;
  const limiters = new Map<string, RateLimiterAbstract>();
  const limiterFor = ({ limit, durationMs }: Rule): RateLimiterAbstract => {
    const name = `${limit} in ${durationMs}`;
    const rule = { points: limit, duration: durationMs / 1000, inMemoryBlockOnConsumed: limit };
    const limiter = limiters.get(name) ?? create(rule, () => void sent++);
    limiters.set(name, limiter);
    return limiter;
  };
  return {
    get sent() {
      return sent;
    },
    async verify(key, rule) {
      try {
        const { msBeforeNext } = await limiterFor(rule).consume(key);
        return { admitted: true, endsAtMs: Date.now() + msBeforeNext };
      } catch (refusal) {
        if (!(refusal instanceof RateLimiterRes)) throw refusal;
        return { admitted: false, endsAtMs: Date.now() + refusal.msBeforeNext };
      }
    },
  };
}
