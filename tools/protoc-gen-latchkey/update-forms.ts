// Messages in an update are changed in part: derives the form that they have there, in which nothing has to be sent.
import type { Message } from "./read-contract.ts";
import type { Field, FieldType } from "./read-field.ts";

/** All messages, and at the end the forms in which updates have some of them. */
export function withUpdateForms(messages: readonly Message[]): Message[] {
  const forms = new Map<string, Message>();
  const updates = messages.map((message) => ({
    ...message,
    fields: message.fields.map((field) => (field.change === undefined ? field : inForm(field, field.itemsBy))),
  }));
  return [...updates, ...forms.values()];

  /** `itemsBy` is given of a list. A list without one has whole messages. */
  function inForm(field: Field, itemsBy: string | undefined): Field {
    const { type } = field;
    if (type.kind === "message") return { ...field, type: formOf(type, undefined) };
    if (type.kind !== "list" || type.items.type.kind !== "message" || itemsBy === undefined) return field;
    return { ...field, type: { ...type, items: { ...type.items, type: formOf(type.items.type, itemsBy) } } };
  }

  function formOf(type: Extract<FieldType, { kind: "message" }>, itemsBy: string | undefined): typeof type {
    const name = `${type.name}Update`;
    const message = messages.find((each) => each.name === type.name) as Message;
    if (!forms.has(name)) {
      const fields = message.fields.map((field) => (field.name === itemsBy ? field : asChange(field)));
      const comment = `${message.comment} In an update, what is absent stays as it is.`;
      forms.set(name, { ...message, name, comment, fields, rules: {}, formOf: type.name });
    }
    return { ...type, name };
  }

  /** What a message must have can be changed, what it may have can also be removed. */
  function asChange(field: Field): Field {
    return inForm({ ...field, required: false, change: field.required ? "set" : "set or remove" }, undefined);
  }
}
