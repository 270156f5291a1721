/** What the routes work with: the parts of the running service, put together by `serve`. */

import type { DeviceLogins } from "../account/device-login.ts";
import type { Keys } from "../account/keys.ts";
import type { People } from "../account/people.ts";
import type { Meter } from "../charge/charges.ts";
import type { Drills } from "../drill.ts";
import type { Admission } from "../robot/admission.ts";
import type { Catalog } from "../robot/catalog.ts";
import type { Observations } from "../robot/replay.ts";
import type { SessionTable } from "../robot/session/table.ts";
import type { Clock } from "../std/clock.ts";
import type { Lifecycle } from "../std/lifecycle.ts";
import type { Log } from "../std/log.ts";
import type { Store } from "../store/store.ts";
import type { Ingress } from "./http/ingress.ts";
import type { ServiceMetrics } from "./ops/service-metrics.ts";
import type { Sockets } from "./robot-socket/sockets.ts";

export interface Service extends ServiceMetrics {
  readonly clock: Clock;
  readonly log: Log;
  readonly store: Store;
  readonly keys: Keys;
  readonly meter: Meter;
  readonly people: People;
  readonly deviceLogins: DeviceLogins;
  readonly sessions: SessionTable;
  readonly observations: Observations;
  readonly catalog: Catalog;
  readonly lifecycle: Lifecycle;
  readonly ingress: Ingress;
  readonly admission: Admission;
  readonly sockets: Sockets;
  readonly drills: Drills;
  /** From admission to answer of one chunk, milliseconds. */
  readonly chunkMs: number;
}
