import fc from "fast-check";
import { expect, it } from "vitest";
import { formatId, idRandomLength } from "../../src/domain/id.ts";
import { InvalidRequest } from "../../src/rpc/invalid-request.ts";
import { fromCursor, toCursor } from "../../src/rpc/page-cursor.ts";

it("a cursor leads back to the id that it was made of, and no other text is a cursor", () => {
  const moments = fc.integer({ min: 1, max: 253_402_300_799_999 });
  const chance = fc.uint8Array({ minLength: idRandomLength, maxLength: idRandomLength });
  fc.assert(
    fc.property(moments, chance, (nowMs, random) => {
      const id = formatId("key", nowMs, random);
      const cursor = toCursor("keys", id);
      expect(fromCursor("keys", cursor)).toBe(id);
      expect(cursor).toMatch(/^[\w-]{1,255}$/);
    }),
  );
  fc.assert(
    fc.property(fc.string(), (text) => {
      expect(() => fromCursor("keys", text)).toThrow(InvalidRequest);
      expect(() => fromCursor("keys", Buffer.from(text).toString("base64url"))).toThrow(InvalidRequest);
      expect(() => fromCursor("keys", toCursor("keys", `${text}-`))).toThrow(InvalidRequest);
    }),
  );
});

it("a cursor that was cut short, or is of another list, is none", () => {
  const cursor = toCursor("keys", "key_034yj9zmCvoS1aHM9UFwNm");
  for (let length = 0; length < cursor.length; length++)
    expect(() => fromCursor("keys", cursor.slice(0, length))).toThrow(InvalidRequest);
  expect(() => fromCursor("owners", cursor)).toThrow(InvalidRequest);
});
