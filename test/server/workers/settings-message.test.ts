import { expect, it } from "vitest";
import { readSettings } from "../../../src/config/settings.ts";
import { Secret } from "../../../src/domain/secret.ts";
import { fromMessage, toMessage } from "../../../src/server/workers/settings-message.ts";

it("settings cross between processes with their secrets", () => {
  const { settings } = readSettings({ REDIS_URL: "redis://:password@localhost", LATCHKEY_CORS_ORIGINS: "" }, () => "");
  // As Node sends it.
  const received = fromMessage(structuredClone(toMessage(settings))) as typeof settings;
  expect(Object.keys(received)).toEqual(Object.keys(settings));
  expect(received.redisUrl).toBeInstanceOf(Secret);
  expect(received.redisUrl?.reveal()).toBe("redis://:password@localhost");
  expect(JSON.stringify(received)).toBe(JSON.stringify(settings));
});
