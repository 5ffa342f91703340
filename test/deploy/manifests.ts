import { parse, parseAllDocuments } from "yaml";
import { readText, readTree } from "../support/repository.ts";

/** A process as one of the manifests starts it. */
export interface Workload {
  /** The file and the name in it. */
  readonly name: string;
  readonly environment: Readonly<Record<string, string>>;
  /** Of the container, as the manifest names them. */
  readonly ports: readonly number[];
  /** Folders of secrets in it, with the names of their files. */
  readonly secretFiles: readonly string[];
  readonly stopSeconds: number;
}

/** An object of Kubernetes, as far as it is looked at. */
export interface KubernetesObject {
  readonly file: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
  // biome-ignore lint/suspicious/noExplicitAny: its shape depends on its kind.
  readonly spec: any;
}

export function kubernetesObjects(): KubernetesObject[] {
  return [...readTree("deploy/kubernetes", ".yaml")].flatMap(([file, text]) =>
    parseAllDocuments(text).map((document) => {
      if (document.errors.length > 0) throw document.errors[0];
      return { file, ...(document.toJS() as Omit<KubernetesObject, "file">) };
    }),
  );
}

/** The names of the files that `kubectl create secret` makes, by the secret, as the comments of a manifest say. */
function documentedSecrets(file: string): Map<string, string[]> {
  const comments = readText(file).replaceAll(/\\\n# */g, "");
  const commands = [...comments.matchAll(/kubectl create secret generic (\S+)(.*)/g)];
  return new Map(
    commands.map(([, name = "", rest = ""]) => [
      name,
      [...rest.matchAll(/--from-file=(\S+)/g)].map(([, key]) => key as string),
    ]),
  );
}

export function kubernetesWorkloads(): Workload[] {
  const isWorkload = ({ kind }: KubernetesObject) => kind === "Deployment" || kind === "StatefulSet";
  return kubernetesObjects()
    .filter(isWorkload)
    .map(({ file, metadata, spec }) => {
      const pod = spec.template.spec;
      const [container] = pod.containers;
      const env = container.env as { name: string; value: string }[];
      const mounts = container.volumeMounts as { name: string; mountPath: string }[];
      const secrets = (pod.volumes as { name: string; secret?: { secretName: string } }[]).flatMap((volume) => {
        const folder = mounts.find(({ name }) => name === volume.name)?.mountPath;
        const keys = documentedSecrets(file).get(volume.secret?.secretName ?? "") ?? [];
        return keys.map((key) => `${folder}/${key}`);
      });
      return {
        name: `${file} ${metadata.name}`,
        environment: Object.fromEntries(env.map(({ name, value }) => [name, value])),
        ports: (container.ports as { containerPort: number }[]).map(({ containerPort }) => containerPort),
        secretFiles: secrets,
        stopSeconds: pod.terminationGracePeriodSeconds,
      };
    });
}

/** As `docker compose` reads it. */
export function readCompose(): ComposeFile {
  return parse(readText("deploy/compose/compose.yaml"), { merge: true }) as ComposeFile;
}

export interface ComposeFile {
  readonly services: Readonly<
    Record<
      string,
      {
        readonly environment?: Readonly<Record<string, string>>;
        readonly secrets?: readonly string[];
        readonly volumes?: readonly string[];
        readonly stop_grace_period?: string;
        readonly read_only?: boolean;
        readonly depends_on?: unknown;
        readonly ports?: readonly string[];
      }
    >
  >;
  readonly secrets: Readonly<Record<string, { readonly file: string }>>;
  readonly volumes: Readonly<Record<string, unknown>>;
}

export function composeWorkloads(): Workload[] {
  const image = readDockerfile().environment;
  return Object.entries(readCompose().services)
    .filter(([name]) => name.startsWith("latchkey"))
    .map(([name, { environment = {}, secrets = [], stop_grace_period = "10s" }]) => ({
      name: `compose ${name}`,
      environment: { ...image, ...environment },
      ports: [Number(image.PORT)],
      secretFiles: secrets.map((secret) => `/run/secrets/${secret}`),
      stopSeconds: Number.parseInt(stop_grace_period, 10),
    }));
}

/** What a container of the image runs, and as whom. */
export interface Image {
  readonly user: { readonly uid: number; readonly gid: number };
  readonly environment: Readonly<Record<string, string>>;
  readonly command: readonly string[];
  readonly healthCheck: readonly string[];
  /** Folders of the repository, after the build, and where they are in the image. */
  readonly copied: readonly (readonly [from: string, to: string])[];
  readonly volume: string;
}

export function readDockerfile(): Image {
  const stage =
    readText("deploy/docker/Dockerfile")
      .split(/^FROM /m)
      .at(-1) ?? "";
  const line = (pattern: RegExp): string => {
    const [, found] = pattern.exec(stage) ?? [];
    if (found === undefined) throw new Error(`the Dockerfile has nothing like ${pattern}`);
    return found;
  };
  const [uid, gid] = line(/^USER (\d+:\d+)$/m)
    .split(":")
    .map(Number) as [number, number];
  const copies = [...stage.matchAll(/^COPY --from=build (.+) (\S+)$/gm)];
  return {
    user: { uid, gid },
    environment: Object.fromEntries(
      line(/^ENV (.*)$/m)
        .split(" ")
        .map((pair) => pair.split("=") as [string, string]),
    ),
    command: [...JSON.parse(line(/^ENTRYPOINT (.*)$/m)), ...JSON.parse(line(/^CMD (.*)$/m))],
    healthCheck: JSON.parse(line(/^HEALTHCHECK .* CMD (.*)$/m)) as string[],
    copied: copies.flatMap(([, from = "", to = ""]) =>
      from.split(" ").map((path) => [path.replace("/src/", ""), to] as const),
    ),
    volume: line(/^VOLUME (\S+)$/m),
  };
}
