import { describe, expect, it } from "vitest";
import { slotOf } from "../../src/domain/redis-slots.ts";
import { parseRedisUrl, type RedisServers } from "../../src/domain/redis-url.ts";

const secret = "s3cr3t";

function partsOf({ password, sentinelPassword, ...others }: RedisServers) {
  return { ...others, password: password?.reveal(), sentinelPassword: sentinelPassword?.reveal() };
}

describe("the URL of a Redis", () => {
  it.each([
    [
      "redis://localhost",
      { kind: "single", addresses: [{ host: "localhost", port: 6379 }], isTls: false, database: 0 },
    ],
    ["redis://127.0.0.1:7000/", { addresses: [{ host: "127.0.0.1", port: 7000 }], database: 0 }],
    [
      "rediss://redis.example:6380/12",
      { isTls: true, addresses: [{ host: "redis.example", port: 6380 }], database: 12 },
    ],
    ["redis://[::1]:7000", { addresses: [{ host: "::1", port: 7000 }] }],
    ["redis://:pass@h", { user: undefined, password: "pass" }],
    ["redis://user:p%40ss%2Fw%25:rd@h", { user: "user", password: "p@ss/w%:rd" }],
    ["redis://user:p@ss@h", { user: "user", password: "p@ss" }],
    [
      "redis+cluster://user:pass@a:1,b,[::1]:3",
      {
        kind: "cluster",
        addresses: [
          { host: "a", port: 1 },
          { host: "b", port: 6379 },
          { host: "::1", port: 3 },
        ],
        password: "pass",
      },
    ],
    ["rediss+cluster://a/0", { kind: "cluster", isTls: true }],
    [
      "redis+sentinel://:pass@a,b:2/main/3?sentinelUser=s&sentinelPassword=x%26y",
      {
        kind: "sentinel",
        addresses: [
          { host: "a", port: 26_379 },
          { host: "b", port: 2 },
        ],
        masterName: "main",
        database: 3,
        password: "pass",
        sentinelUser: "s",
        sentinelPassword: "x&y",
      },
    ],
    ["redis+sentinel://a/main?sentinelPassword=x@y", { masterName: "main", sentinelPassword: "x@y" }],
    ["rediss+sentinel://a/my-master", { kind: "sentinel", isTls: true, masterName: "my-master", database: 0 }],
  ])("is understood: %s", (text, expected) => {
    expect(partsOf(parseRedisUrl(text))).toMatchObject(expected);
  });

  it.each([
    "",
    secret,
    `127.0.0.1:6379/${secret}`,
    `http://:${secret}@127.0.0.1`,
    `redis+http://:${secret}@h`,
    `redis://:${secret}@`,
    `redis://:${secret}@h:0`,
    `redis://:${secret}@h:65536`,
    `redis://:${secret}@h:${secret}`,
    `redis://:${secret}@h,h2`,
    `redis://:${secret}@h /0`,
    `redis://${secret}@h`,
    `redis://:${secret}%@h`,
    `redis://h/${secret}`,
    `redis://h/0/${secret}`,
    `redis://h?password=${secret}`,
    `redis+cluster://:${secret}@a,`,
    `redis+cluster://:${secret}@a,,b`,
    `redis+cluster://:${secret}@a/1`,
    `redis+sentinel://:${secret}@a`,
    `redis+sentinel://:${secret}@a/`,
    `redis+sentinel://:${secret}@a/main/x`,
    `redis+sentinel://a/main?${secret}`,
    `redis+sentinel://a/main?password=${secret}`,
  ])("is refused without repeating it: %s", (text) => {
    expect(() => parseRedisUrl(text)).toThrow(/^must /);
    expect(() => parseRedisUrl(text)).not.toThrow(secret);
  });

  it.each([
    `redis://u:p@ss/${secret}#rd@h`,
    `redis://u:12/${secret}@h`,
    `redis://u:12?${secret}@h`,
    `redis+cluster://u:p@${secret}/a@a,b`,
    `redis+sentinel://u:p@ss/${secret}@a`,
    `redis+sentinel://u:p@ss/${secret}@a/1`,
  ])("is refused because the password has to be percent-encoded: %s", (text) => {
    expect(() => parseRedisUrl(text)).toThrow(/^must have special characters .* percent-encoded: @ is %40/);
    expect(() => parseRedisUrl(text)).not.toThrow(secret);
  });
});

describe("the slot of a key", () => {
  // As Redis' own documentation has them.
  it.each([
    ["123456789", 0x31c3],
    ["foo", 12_182],
    ["{user1000}.following", slotOf("user1000")],
    ["foo{}{bar}", slotOf("foo{}{bar}")],
    ["foo{{bar}}zap", slotOf("{bar")],
    ["foo{bar}{zap}", slotOf("bar")],
  ])("%s is %i", (key, slot) => {
    expect(slotOf(key)).toBe(slot);
  });

  it.each(["é", "für alle", "€", "鍵", "🔑", "a\u07ff\u0800\uffff\u{10000}z", "{ключ}.a"])(
    "%s is that of its bytes in UTF-8",
    (key) => {
      const hashed = /\{(.+)\}/.exec(key)?.[1] ?? key;
      let crc = 0;
      for (const byte of Buffer.from(hashed)) {
        crc ^= byte << 8;
        for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? ((crc << 1) ^ 0x1021) & 0xffff : crc << 1;
      }
      expect(slotOf(key)).toBe(crc % 16_384);
    },
  );
});
