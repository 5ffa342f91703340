import type { Ambient } from "../../ambient/ambient.ts";
import { slotOf } from "../../domain/redis-slots.ts";
import type { RedisAddress } from "../../domain/redis-url.ts";
import { exchangeWithEach, type HubAnswer, type SubjectReport, type WindowHub } from "../local/window-hub.ts";
import { locateServer, type RedisAccess, readSlots, rotate, type SlotOwners, WrongServer } from "./locate-server.ts";
import { RedisTroubles } from "./redis-troubles.ts";
import { RedisWindowNode, windowNameOf } from "./redis-window-node.ts";

export interface RedisWindowHubOptions extends Pick<Ambient, "random" | "log"> {
  readonly access: RedisAccess;
}

const epochKey = "latchkey:windows-epoch";
/** How often the cluster is asked which server has which slots: soon after an error, rarely otherwise. */
const refreshMs = 500;
const refreshesWhileWell = 20;

/** Replicas meet in Redis: in one server, or in a cluster where each window is with the master of its key. */
export class RedisWindowHub implements WindowHub {
  readonly #options: RedisWindowHubOptions;
  /** By address; of a server that is no cluster there is one. */
  #nodes: ReadonlyMap<string, RedisWindowNode> = new Map();
  /** Undefined: one server has everything. */
  #owners: SlotOwners | undefined;
  /** Those of the cluster as a whole; the connections of the nodes log their own. */
  readonly #troubles: RedisTroubles;
  readonly #refresh: NodeJS.Timeout | undefined;
  #refreshes = 0;
  #isRefreshing = false;
  /** Whether the owners may be others by now. */
  #isStale = false;
  #closed = false;

  constructor(options: RedisWindowHubOptions) {
    this.#options = options;
    this.#troubles = new RedisTroubles(options.log);
    if (options.access.servers.kind === "cluster") {
      this.#owners = [];
      this.#refresh = setInterval(() => void this.#refreshIfDue(), refreshMs).unref();
      void this.#refreshIfDue();
    } else {
      this.#nodes = new Map([["", this.#createNode(locateServer(options.access, 0), epochKey)]]);
    }
  }

  get isReachable(): boolean {
    for (const node of this.#nodes.values()) if (node.isUp) return true;
    return false;
  }

  get isWhole(): boolean {
    for (const node of this.#nodes.values()) if (!node.isUp) return false;
    return this.#nodes.size > 0;
  }

  async exchange(reports: readonly SubjectReport[]): Promise<HubAnswer> {
    const nodes =
      reports.length === 0 ? [...this.#nodes.values()] : reports.map(({ subject }) => this.#nodeOf(subject));
    const up = nodes.map((node) => (node?.isUp ? node : undefined));
    const { news, refusal, asked, failures } = await exchangeWithEach(reports, up, (node, sent) => node.exchange(sent));
    if (failures.length > 0) this.#isStale = true;
    if (failures.length === asked) throw failures[0] ?? new Error("Redis is away");
    const epoch = [...this.#nodes].map(([address, node]) => `${address} ${node.epoch}`).join();
    return { news, epoch, refusal };
  }

  close(): void {
    this.#closed = true;
    clearInterval(this.#refresh);
    for (const node of this.#nodes.values()) node.close();
  }

  #nodeOf(subject: string): RedisWindowNode | undefined {
    if (this.#owners === undefined) return this.#nodes.get("");
    const owner = this.#owners[slotOf(windowNameOf(subject))];
    return owner && this.#nodes.get(nameOf(owner));
  }

  #createNode(locate: () => Promise<RedisAddress>, key: string): RedisWindowNode {
    const onMoved = () => {
      this.#isStale = true;
    };
    return new RedisWindowNode({ ...this.#options, locate, epochKey: key, onMoved });
  }

  async #refreshIfDue(): Promise<void> {
    if (this.isWhole && !this.#isStale) this.#troubles.end("Redis is back", { purpose: "windows" });
    const isDue = this.#isStale || !this.isWhole || this.#refreshes % refreshesWhileWell === 0;
    this.#refreshes++;
    if (!isDue || this.#isRefreshing) return;
    this.#isRefreshing = true;
    this.#isStale = false;
    try {
      const { access } = this.#options;
      // Nodes found later count as well: those that were named at the start may all be gone one day.
      const known = [...access.servers.addresses, ...new Set(this.#owners?.filter((owner) => owner !== undefined))];
      const owners = await readSlots(access, rotate(known, this.#refreshes));
      if (!this.#closed) this.#connectTo(owners);
    } catch (error) {
      this.#isStale = true;
      if (!this.#closed) this.#troubles.warn(error as Error, { purpose: "windows" });
    } finally {
      this.#isRefreshing = false;
    }
  }

  /** Connects to masters that are new and leaves those that are gone. */
  #connectTo(owners: SlotOwners): void {
    const nodes = new Map<string, RedisWindowNode>();
    for (const [name, { address, key }] of mastersOf(owners)) {
      const known = this.#nodes.get(name);
      nodes.set(name, known?.epochKey === key ? known : this.#createNode(async () => address, key));
    }
    for (const [name, node] of this.#nodes) {
      if (nodes.get(name) === node) continue;
      if (!node.isUp)
        this.#troubles.warn(new WrongServer("another server took its place"), { purpose: "windows", server: name });
      node.close();
    }
    this.#nodes = nodes;
    this.#owners = owners;
  }
}

/** The masters by name, each with the epoch's key that all replicas take for it: the first whose slot it serves. */
function mastersOf(owners: SlotOwners): Map<string, { address: RedisAddress; key: string }> {
  const wanted = new Set(owners.flatMap((owner) => (owner ? [nameOf(owner)] : [])));
  const masters = new Map<string, { address: RedisAddress; key: string }>();
  for (let i = 0; masters.size < wanted.size; i++) {
    const key = `${epochKey}:${i}`;
    const address = owners[slotOf(key)];
    if (address && !masters.has(nameOf(address))) masters.set(nameOf(address), { address, key });
  }
  return masters;
}

function nameOf({ host, port }: RedisAddress): string {
  return `${host}:${port}`;
}
