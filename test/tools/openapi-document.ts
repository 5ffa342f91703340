import { authzPath } from "../../src/rpc/authz/authz-contract.ts";
import { readText } from "../support/repository.ts";

interface Content {
  readonly "application/json": { readonly schema: { readonly $ref: string }; readonly example?: object };
}
interface Operation {
  readonly requestBody?: { readonly content: Content };
  readonly responses: { readonly 200: { readonly content: Content } };
}
interface Document {
  readonly servers?: readonly object[];
  readonly paths: Readonly<Record<string, Readonly<Record<"get" | "post", Operation>>>>;
}
export const document: Document = JSON.parse(readText("gen/openapi.json"));
/** Those with JSON. What proxies ask has no bodies: test/rpc/authz-document.test.ts. */
const { [authzPath]: _, ...pathsWithJson } = document.paths;
export const operations = Object.entries(pathsWithJson).flatMap(([path, verbs]) =>
  Object.entries(verbs).map(([verb, operation]) => ({ name: `${verb} ${path}`, operation })),
);
/** The contents of all requests and answers. */
export const contents = operations.flatMap(({ name, operation: { requestBody, responses } }) => [
  ...(requestBody ? [{ name: `the request of ${name}`, ...requestBody.content["application/json"] }] : []),
  { name: `the answer of ${name}`, ...responses[200].content["application/json"] },
]);
