import { describe, expect, it } from "vitest";
import { Health } from "../../gen/health/v1/health_pb.js";
import { KeysService } from "../../gen/latchkey/v1/keys_pb.js";
import { createEndpoints, type Handlers } from "../../src/rpc/endpoints.ts";

const noHandlers = {} as Handlers<never>;

describe("the endpoints of a service", () => {
  it("have the permission that the proto states, also where everyone may call", () => {
    const endpoints = createEndpoints(KeysService, noHandlers);
    expect(endpoints.map(({ method, permission, isPublic }) => [method.name, permission, isPublic])).toEqual(
      expect.arrayContaining([
        ["CreateKey", "keys.create", false],
        ["VerifyKey", "keys.verify", true],
        ["DeleteKey", "keys.delete", false],
      ]),
    );
  });

  it("do not start where a method states no permission", () => {
    expect(() => createEndpoints(Health, noHandlers)).toThrow(/Health.Check does not state the permission/);
  });
});
