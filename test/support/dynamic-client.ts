import * as grpc from "@grpc/grpc-js";
import type { Options, PackageDefinition } from "@grpc/proto-loader";
import { atTestEnd } from "./test-end.ts";

/** How messages look to these clients: names as in the proto file, and nothing for what is absent. */
export const loaderOptions = { keepCase: true, longs: Number, defaults: false } satisfies Options;

type Call = (
  request: object,
  metadata: grpc.Metadata,
  done: (error: grpc.ServiceError | null, answer: object) => void,
) => void;

/** A client of `@grpc/grpc-js`, which knows of a service only what was loaded at run time. */
export function dynamicClient(loaded: PackageDefinition, service: string, port: number): grpc.Client {
  const path = service.split(".");
  const found = path.reduce<unknown>(
    (scope, name) => (scope as Record<string, unknown> | undefined)?.[name],
    grpc.loadPackageDefinition(loaded),
  );
  if (found === undefined) throw new Error(`${service} was not loaded`);
  const Service = found as grpc.ServiceClientConstructor;
  const client = new Service(`127.0.0.1:${port}`, grpc.credentials.createInsecure());
  atTestEnd(() => client.close());
  return client;
}

/** The answers to one key's life, as a dynamic client gets them: created, verified, deleted, and not found afterwards. */
export async function liveOnce(loaded: PackageDefinition, server: { port: number; rootKey: string }) {
  const client = dynamicClient(loaded, "latchkey.v1.KeysService", server.port);
  const metadata = new grpc.Metadata();
  metadata.set("authorization", `Bearer ${server.rootKey}`);
  const call = (method: string, request: object) =>
    new Promise<Record<string, unknown>>((resolve, reject) => {
      const invoke = (client as unknown as Record<string, Call>)[method];
      if (invoke === undefined) throw new Error(`${method} was not loaded`);
      invoke.call(client, request, metadata, (error, answer) =>
        error === null ? resolve({ ...answer }) : reject(error),
      );
    });
  const { key, key_id } = await call("CreateKey", { api_id: "api", remaining: 2 });
  const verified = await call("VerifyKey", { key });
  const deleted = await call("DeleteKey", { key_id });
  const afterwards = await call("VerifyKey", { key });
  return { keyId: key_id, verified, deleted, afterwards };
}
