import { type DescField, type DescMessage, getOption, ScalarType } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import {
  ApiSchema,
  CreateApiRequestSchema,
  KeyDefaultsSchema,
  StoredKeyDefaultsSchema,
  UpdateApiRequestSchema,
} from "../../gen/latchkey/v1/apis_pb.js";
import {
  CreateKeyRequestSchema,
  KeySchema,
  KeyToImportSchema,
  ListKeysRequestSchema,
  UpdateKeyRequestSchema,
} from "../../gen/latchkey/v1/keys_pb.js";
import { Change, change } from "../../gen/latchkey/v1/options_pb.js";
import { CreateOwnerRequestSchema, OwnerSchema, UpdateOwnerRequestSchema } from "../../gen/latchkey/v1/owners_pb.js";
import {
  CreateRootKeyRequestSchema,
  RootKeySchema,
  UpdateRootKeyRequestSchema,
} from "../../gen/latchkey/v1/root_keys_pb.js";
import { defaultsFields, type Field, type Fields, type Kind } from "../../src/domain/fields.ts";
import { apiFields, keyFields, ownerFields, rootKeyFields } from "../../src/domain/resources.ts";

/* Messages are filled by the names of described fields, so that the compiler does not compare them with the proto. */

interface Described {
  readonly fields: Fields;
  readonly creations: readonly DescMessage[];
  readonly update?: DescMessage;
  readonly read: DescMessage;
  /** Fields of these messages that are not described: ids, what is read only, and what a handler treats by hand. */
  readonly others: readonly string[];
}

/** `externalId` is another name of `ownerId`. */
const common = ["externalId", "createdAt", "updatedAt", "version", "ifVersion", "updateMask"];

const resources: Readonly<Record<string, Described>> = {
  key: {
    fields: keyFields,
    creations: [CreateKeyRequestSchema, KeyToImportSchema],
    update: UpdateKeyRequestSchema,
    read: KeySchema,
    others: [
      ...common,
      "keyId",
      "apiId",
      "start",
      "digest",
      "secrets",
      "remaining",
      "spent",
      "prefix",
      "byteLength",
      "useDefaults",
    ],
  },
  owner: {
    fields: ownerFields,
    creations: [CreateOwnerRequestSchema],
    update: UpdateOwnerRequestSchema,
    read: OwnerSchema,
    others: [...common, "ownerId", "remaining", "spent"],
  },
  api: {
    fields: apiFields,
    creations: [CreateApiRequestSchema],
    update: UpdateApiRequestSchema,
    read: ApiSchema,
    others: [...common, "apiId"],
  },
  "defaults of an API": {
    fields: defaultsFields,
    creations: [KeyDefaultsSchema],
    read: StoredKeyDefaultsSchema,
    others: [],
  },
  "root key": {
    fields: rootKeyFields,
    creations: [CreateRootKeyRequestSchema],
    update: UpdateRootKeyRequestSchema,
    read: RootKeySchema,
    others: [...common, "rootKeyId", "start", "allApis"],
  },
};

/** How values of each kind are in messages. */
const forms: { readonly [Name in Kind]: (field: DescField) => boolean } = {
  text: (field) => field.fieldKind === "scalar" && field.scalar === ScalarType.STRING,
  whole: isNumber,
  moment: isNumber,
  flag: (field) => field.fieldKind === "scalar" && field.scalar === ScalarType.BOOL,
  json: isMessage("Struct"),
  texts: isListOfTexts,
  addresses: isListOfTexts,
  rateLimit: isMessage("Ratelimit"),
  rateLimits: isMessage("NamedRatelimit", "list"),
  refill: isMessage("Refill"),
  defaults: isMessage("KeyDefaults"),
};

function isNumber(field: DescField): boolean {
  const numbers = [ScalarType.DOUBLE, ScalarType.INT32, ScalarType.UINT32, ScalarType.INT64, ScalarType.UINT64];
  return field.fieldKind === "scalar" && numbers.includes(field.scalar);
}

/** Some are read as other messages, such as `RefillState` and `KeyRatelimit`. */
function isMessage(name: string, fieldKind = "message") {
  return (field: DescField) => field.fieldKind === fieldKind && field.message?.name.includes(name) === true;
}

function isListOfTexts(field: DescField): boolean {
  return field.fieldKind === "list" && field.scalar === ScalarType.STRING;
}

/** Everything that differs, with the name of its message. */
function differences({ fields, creations, update, read, others }: Described): string[] {
  const described = Object.entries(fields).map(([name, field]): [string, Field] => [field.publicName ?? name, field]);
  const messages = [...creations, ...(update ? [update] : []), read];
  const wrong = described.flatMap(([name, { kind }]) =>
    messages.flatMap((message) => {
      const field = message.fields.find(({ localName }) => localName === name);
      if (field === undefined) return [`${message.name} has no ${name}`];
      return forms[kind](field) ? [] : [`${message.name}.${name} is no ${kind}`];
    }),
  );
  const unchanged = described.flatMap(([name, { byDefault }]) => {
    const field = update?.fields.find(({ localName }) => localName === name);
    if (field === undefined) return [];
    const can = getOption(field, change);
    // One with a default is set to it, which its message may or may not offer as null.
    return can === Change.SET_OR_REMOVE || (can === Change.SET && byDefault !== undefined)
      ? []
      : [`${name} cannot change`];
  });
  const known = new Set([...described.map(([name]) => name), ...others]);
  const unknown = messages.flatMap((message) =>
    message.fields
      .filter(({ localName }) => !known.has(localName))
      .map(({ localName }) => `${message.name}.${localName}`),
  );
  return [...wrong, ...unchanged, ...unknown.map((name) => `nobody describes ${name}`)];
}

describe("the fields that are described, and the contract", () => {
  it.each(Object.entries(resources))("are the same of a %s", (_, described) => {
    expect(differences(described)).toEqual([]);
  });

  it("keys are filtered by the fields that say so", () => {
    const filters = Object.entries(keyFields).filter(([, field]) => (field as Field).isFilter);
    expect(filters.length).toBeGreaterThan(0);
    for (const [name, { kind }] of filters) {
      const field = ListKeysRequestSchema.fields.find(({ localName }) => localName === name);
      expect(field && forms[kind](field), name).toBe(true);
    }
  });

  it("the control: a field that is forgotten in either is found", () => {
    const { key } = resources as { readonly key: Described };
    const { name: _, ...without } = keyFields;
    expect(differences({ ...key, fields: without })).toContain("nobody describes CreateKeyRequest.name");
    const more = { ...keyFields, colour: { kind: "text" } } satisfies Fields;
    expect(differences({ ...key, fields: more })).toContain("UpdateKeyRequest has no colour");
    const other = { ...keyFields, name: { kind: "whole" } } satisfies Fields;
    expect(differences({ ...key, fields: other })).toContain("Key.name is no whole");
  });
});
