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
      const cursor = toCursor(id);
      expect(fromCursor("key", cursor)).toBe(id);
      expect(cursor).toMatch(/^[\w-]{1,255}$/);
    }),
  );
  fc.assert(
    fc.property(fc.string(), (text) => {
      expect(() => fromCursor("key", text)).toThrow(InvalidRequest);
      expect(() => fromCursor("key", toCursor(text))).toThrow(InvalidRequest);
      expect(() => fromCursor("key", toCursor(`req_${text}`))).toThrow(InvalidRequest);
    }),
  );
});
