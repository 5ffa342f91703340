import type { Section } from "../harness/section.ts";
import { before } from "./before.ts";
import { cold } from "./cold.ts";
import { counted } from "./counted.ts";
import { cpu } from "./cpu.ts";
import { decisions } from "./decisions.ts";
import { growth } from "./growth.ts";
import { grpc } from "./grpc.ts";
import { json } from "./json.ts";
import { latency } from "./latency.ts";
import { lists } from "./lists.ts";
import { peers } from "./peers.ts";
import { proxies } from "./proxies.ts";
import { start } from "./start.ts";
import { strict } from "./strict.ts";
import { tls } from "./tls.ts";
import { updates } from "./updates.ts";
import { workers } from "./workers.ts";

/** By the names that the command takes, in the order in which they run. */
export const sections: Readonly<Record<string, Section>> = {
  json,
  grpc,
  counted,
  strict,
  decisions,
  workers,
  peers,
  proxies,
  tls,
  growth,
  cold,
  lists,
  updates,
  start,
  latency,
  cpu,
  before,
};
