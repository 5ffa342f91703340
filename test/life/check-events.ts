import { fieldsOf, type KeyRecord, type Problem } from "./key-record.ts";
import { type Call, isKind } from "./operations.ts";

const methods = new Map<string, string>([
  ["createKey", "keys.createKey"],
  ["importKeys", "keys.importKeys"],
  ["updateKey", "keys.updateKey"],
  ["updateRemaining", "keys.updateRemaining"],
  ["rerollKey", "keys.rerollKey"],
  ["deleteKey", "keys.deleteKey"],
]);

/** As many events as versions, in order; each by the root key, with the method and the fields of a call that was made. */
export function checkEvents(record: KeyRecord): Problem[] {
  const { keyId, events, versions, reads, calls } = record;
  const problem = (text: string, some: readonly Call[] = []) => ({ rule: "events", keyId, text, calls: some });
  const gap = events.findIndex(({ version }, at) => version !== at + 1);
  if (gap !== -1) return [problem(`event ${gap + 1} is of version ${events[gap]?.version}`)];
  const last = Math.max(...reads.map(({ key }) => key.version));
  if (last > events.length) return [problem(`${events.length} events for ${last} versions`)];

  const problems: Problem[] = [];
  for (const [kind, method] of methods) {
    const made = calls.filter((call) => call.operation.kind === kind && call.answer.status === "done");
    const maybe = calls.filter((call) => call.operation.kind === kind && call.answer.status === "unknown");
    const logged = events.filter((event) => event.method === method);
    if (logged.length < made.length || logged.length > made.length + maybe.length) {
      const text = `${logged.length} events of ${method}: ${made.length} were made, ${maybe.length} may have been`;
      problems.push(problem(text));
      continue;
    }
    const actors = (list: readonly { actor: string }[]) => Map.groupBy(list, ({ actor }) => actor);
    for (const [actor, own] of actors(made)) {
      if ((actors(logged).get(actor)?.length ?? 0) < own.length)
        problems.push(problem(`an event of ${actor} has another root key`));
    }
  }
  for (const { number, call } of versions) {
    const event = events[number - 1];
    if (event === undefined || event.actor !== call.actor || event.method !== methods.get(call.operation.kind)) {
      problems.push(problem(`event ${number} is not of the change that made the version`, [call]));
    } else if (
      isKind(call, "updateKey") &&
      String([...event.fields].sort()) !== String(fieldsOf(call.operation.changes))
    ) {
      problems.push(problem(`event ${number} names ${event.fields.join()}`, [call]));
    }
  }
  return problems;
}
