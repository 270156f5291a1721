/** What the transport works with: the parts of the running service that every route needs, and no product's. */

import type { Unpaid } from "../charge/unpaid.ts";
import type { Clock } from "../std/clock.ts";
import type { Lifecycle } from "../std/lifecycle.ts";
import type { Log } from "../std/log.ts";
import type { Counter } from "../std/metrics.ts";
import type { Networks } from "../std/networks.ts";
import type { Bodies } from "./bodies.ts";
import type { Ingress } from "./ingress.ts";
import type { Authenticate } from "./principal.ts";

export interface HttpDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly lifecycle: Lifecycle;
  /** The budget of request bodies in memory. */
  readonly ingress: Ingress;
  /** Reads large JSON bodies beside the event loop. */
  readonly bodies: Bodies;
  /** Answered requests by `route` and `status`. */
  readonly requests: Counter<"route" | "status">;
  readonly authenticate: Authenticate;
  /** The budget of work that nobody pays for, by account. */
  readonly unpaid: Unpaid;
  /** Those whose `X-Forwarded-*` is believed. */
  readonly proxies: Networks;
}
