import type { Message } from "./read-contract.ts";
import type { Field } from "./read-field.ts";

/** What needs a field is content with its other name. */
export function withAlias(message: Message, { name, aliasOf }: Field): Message {
  const target = message.fields.find((field) => field.name === aliasOf);
  if (target === undefined) return message;
  const needed = (message.rules.anyOf ?? (target.required ? [{ required: [target.name] }] : [])) as Alternative[];
  if (target.required && message.rules.anyOf !== undefined)
    throw new Error(`${message.name}: ${target.name} is required, has another name, and there is another anyOf`);
  if (!needed.some(({ required }) => required.includes(target.name))) return message;
  const fields = message.fields.map((field) =>
    field === target && field.required ? { ...field, required: false, isAliased: true } : field,
  );
  return { ...message, fields, rules: { ...message.rules, anyOf: [...needed, { required: [name] }] } };
}

type Alternative = { required: string[] };
