// Prints the API reference as one page of HTML that needs nothing else: no script, no request to another host.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { EXAMPLES } from "./examples.ts";
import { ERRORS } from "./http-facts.ts";
import { type Authz, readAuthz } from "./read-authz.ts";
import type { Contract, Message, Method, Service } from "./read-contract.ts";
import type { Field, FieldType } from "./read-field.ts";

export function emitPage({ services, messages }: Contract): string {
  const authz = readAuthz(messages);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Latchkey: API reference</title>
<style>${STYLE}</style>
</head>
<body>
<nav aria-label="Contents">
<h2>Latchkey</h2>
${services.map(contentsOf).join("\n")}
${authz ? '<h3><a href="#authz">authz</a></h3>' : ""}
<h3><a href="#errors">Errors</a></h3>
<ul>${ERRORS.map(({ code }) => `<li><a href="#${code}">${code}</a></li>`).join("")}</ul>
</nav>
<main>
<h1>API reference</h1>
<p>Every method is a <code>POST</code> with JSON to <code>/v1/…</code>, and the same over gRPC, gRPC-Web and Connect as <code>latchkey.v1</code>. The machine-readable form is <a href="/openapi.json">openapi.json</a>. Methods that need a root key take it as <code>Authorization: Bearer &lt;root key&gt;</code>.</p>
${services.map((service) => sectionOf(service, messages)).join("\n")}
${authz ? authzOf(authz) : ""}
<h2 id="errors">Errors</h2>
<p>An error is <code>{"error": {"code", "message", "docs", "requestId"}}</code>, with <code>violations</code> for fields that are wrong. Whether a key is valid is never an error.</p>
${ERRORS.map(errorOf).join("\n")}
</main>
</body>
</html>
`;
}

const STYLE = `
:root{color-scheme:light dark;--line:#8884;--dim:#8889}
body{margin:0;font:16px/1.55 system-ui,sans-serif;display:grid;grid-template-columns:16rem minmax(0,1fr)}
nav{position:sticky;top:0;height:100vh;overflow:auto;padding:1rem;border-right:1px solid var(--line);box-sizing:border-box;font-size:.875rem}
nav ul{list-style:none;margin:0 0 1rem;padding:0}nav h3{margin:.5rem 0 0;font-size:.875rem;break-after:avoid}
main{padding:1rem 2rem 6rem;max-width:60rem}
h2{margin-top:3rem;border-bottom:1px solid var(--line)}h3{margin-top:2.5rem}
code,pre{font:.875em/1.5 ui-monospace,monospace}pre{overflow:auto;padding:.75rem;border:1px solid var(--line);border-radius:.375rem}
.scroll{overflow-x:auto}table{border-collapse:collapse;width:100%}
th,td{text-align:left;vertical-align:top;padding:.375rem .75rem .375rem 0;border-bottom:1px solid var(--line)}
td>:first-child{margin-top:0}td>:last-child{margin-bottom:0}
.dim{color:GrayText}:target{scroll-margin-top:1rem;outline:2px solid Highlight;outline-offset:.25rem}
@media(max-width:50rem){body{display:block}nav{position:static;height:auto;border:0;columns:2}nav ul{break-inside:avoid}main{padding:1rem}}
`;

function contentsOf({ group, methods }: Service): string {
  const items = methods.map(({ name }) => `<li><a href="#${group}.${name}">${group}.${name}</a></li>`);
  return `<h3>${group}</h3>\n<ul>${items.join("")}</ul>`;
}

function sectionOf(service: Service, messages: readonly Message[]): string {
  const methods = service.methods.map((method) => methodOf(service, method, messages));
  return `<h2 id="${service.group}">${service.group}</h2>\n${textOf(service.comment)}\n${methods.join("\n")}`;
}

function methodOf({ group }: Service, method: Method, messages: readonly Message[]): string {
  const routes = method.routes.map(({ verb, path }) => `<code>${verb} ${path}</code>`).join(", ");
  const access = method.isPublic
    ? `Open, unless the service asks for a root key with <code>${method.permission}</code>.`
    : `Needs a root key with <code>${method.permission}</code>.`;
  const repeat = method.isIdempotent ? " Takes <code>Idempotency-Key</code>." : "";
  const example = EXAMPLES[method.path];
  return [
    `<h3 id="${group}.${method.name}">${group}.${method.name}</h3>`,
    `<p>${routes}. ${access}${repeat}</p>`,
    textOf(method.comment),
    fieldsOf("Request", method.request, messages),
    ...exampleOf(example?.request),
    fieldsOf("Answer", method.response, messages),
    ...exampleOf(example?.response),
  ].join("\n");
}

function authzOf({ path, comment, parameters, rootKey, answers }: Authz): string {
  const headers = new Map(
    answers.flatMap((answer) => answer.headers).map((header) => [header.name, header.description]),
  );
  return [
    '<h2 id="authz">authz</h2>',
    `<p><code>GET ${path}</code>, and any other method.</p>`,
    textOf(comment),
    tableOf(
      ["Query parameter", "type", "meaning"],
      parameters.map((field) => rowOf(field, field.name, { role: "request" })),
    ),
    tableOf(["Header of the request", "meaning"], [cellsOf(rootKey.name, rootKey.description)]),
    tableOf(
      ["Status", "x-latchkey-code", "meaning"],
      answers.map(({ status, codes, description }) => cellsOf(`${status}`, codes.join(", "), description)),
    ),
    tableOf(
      ["Header of the answer", "meaning"],
      [...headers].map(([name, description]) => cellsOf(name, description)),
    ),
  ].join("\n");
}

function exampleOf(example: object | undefined): string[] {
  return example === undefined ? [] : [`<pre>${escapeHtml(JSON.stringify(example, null, 2))}</pre>`];
}

/** The fields of a message and, as deep as they go, of the messages in it. */
function fieldsOf(title: string, name: string, messages: readonly Message[]): string {
  const rows = rowsOf(name, "", messages, []);
  if (rows.length === 0) return `<p>${title}: <code>{}</code></p>`;
  return tableOf([title, "type", "meaning"], rows);
}

function tableOf(titles: readonly string[], rows: readonly string[]): string {
  const head = `<tr>${titles.map((title) => `<th scope="col">${title}</th>`).join("")}</tr>`;
  return `<div class="scroll"><table>\n<thead>${head}</thead>\n<tbody>\n${rows.join("\n")}\n</tbody>\n</table></div>`;
}

function cellsOf(...[name, ...texts]: readonly string[]): string {
  return `<tr><td><code>${name}</code></td>${texts.map((text) => `<td>${textOf(text)}</td>`).join("")}</tr>`;
}

function rowsOf(name: string, before: string, messages: readonly Message[], above: readonly string[]): string[] {
  // A message that holds itself would never end.
  if (above.includes(name)) return [];
  const message = messages.find((each) => each.name === name);
  return (message?.fields ?? []).flatMap((field) => {
    const path = `${before}${field.name}`;
    const inner = messageIn(field.type);
    const row = rowOf(field, path, message as Message);
    if (inner === undefined) return [row];
    const mark = field.type.kind === "list" ? "[]." : ".";
    return [row, ...rowsOf(inner, `${path}${mark}`, messages, [...above, name])];
  });
}

function rowOf(field: Field, path: string, { role }: Pick<Message, "role">): string {
  const isNeeded = field.required && role === "request";
  const type = `${typeOf(field.type)}${field.change === "set or remove" ? " or null" : ""}`;
  const needed = isNeeded ? "" : ' <span class="dim">optional</span>';
  const presence = role === "request" ? needed : field.required ? "" : ' <span class="dim">if there</span>';
  return `<tr><td><code>${path}</code>${presence}</td><td>${escapeHtml(type)}</td><td>${textOf(field.comment)}</td></tr>`;
}

function messageIn(type: FieldType): string | undefined {
  if (type.kind === "list") return messageIn(type.items.type);
  return type.kind === "message" ? type.name : undefined;
}

function typeOf(type: FieldType): string {
  switch (type.kind) {
    case "string":
      return type.oneOf.length > 0 ? type.oneOf.map((value) => JSON.stringify(value)).join(", ") : "string";
    case "integer":
      return "number";
    case "boolean":
      return "boolean";
    case "struct":
    case "message":
      return "object";
    case "list":
      return `list of ${typeOf(type.items.type)}s`;
  }
}

/** As the page on errors explains it. */
function errorOf({ code }: (typeof ERRORS)[number]): string {
  const [, explained] = new RegExp(`^## ${code}\\n([^]*?)(?=^## |$(?![^]))`, "m").exec(errorsPage) ?? [];
  if (explained === undefined) throw new Error(`docs/errors.md does not explain ${code}`);
  return `<h3 id="${code}">${code}</h3>\n${textOf(explained.trim())}`;
}

const errorsPage = readFileSync(join(import.meta.dirname, "../../docs/errors.md"), "utf8");

/** A comment of the proto: paragraphs, and code between backticks. */
function textOf(comment: string): string {
  const paragraphs = comment.split(/\n\s*\n/).filter((each) => each !== "");
  return paragraphs.map((paragraph) => `<p>${inline(paragraph)}</p>`).join("\n");
}

function inline(text: string): string {
  const withoutLinks = text.replace(/\[([^\]]+)\]\([^)]+\)/g, "$1");
  return escapeHtml(withoutLinks).replace(/`([^`]+)`/g, "<code>$1</code>");
}

function escapeHtml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}
