/** What the routes work with: the parts of the running service, put together by `serve`. */

import type { DeviceLogins } from "../account/device-login.ts";
import type { Keys } from "../account/keys.ts";
import type { People } from "../account/people.ts";
import type { Charges } from "../charge/charges.ts";
import type { Drills } from "../drill.ts";
import type { Admission } from "../robot/admission.ts";
import type { Catalog } from "../robot/catalog.ts";
import type { Observations } from "../robot/replay.ts";
import type { SessionTable } from "../robot/session/table.ts";
import type { Clock } from "../std/clock.ts";
import type { Lifecycle } from "../std/lifecycle.ts";
import type { Log } from "../std/log.ts";
import type { Counter, Recent } from "../std/metrics.ts";
import type { AccountStore } from "../store/accounts/accounts.ts";
import type { ChargeStore } from "../store/charges/charges.ts";
import type { RobotStore } from "../store/robot/robot.ts";
import type { StoreBase } from "../store/store.ts";
import type { Ingress } from "./http/ingress.ts";
import type { Sockets } from "./robot-socket/sockets.ts";

export interface Service {
  readonly clock: Clock;
  readonly log: Log;
  readonly store: Pick<StoreBase, "ping"> & {
    readonly accounts: AccountStore;
    readonly charges: Pick<ChargeStore, "usageDays">;
    readonly robot: Pick<RobotStore, "settleChunk">;
  };
  readonly keys: Keys;
  readonly charges: Charges;
  /** Charges whose price was above their hold, by `item`. */
  readonly clamped: Counter;
  readonly people: People;
  readonly devices: DeviceLogins;
  readonly sessions: SessionTable;
  readonly observations: Observations;
  readonly catalog: Catalog;
  readonly lifecycle: Lifecycle;
  readonly ingress: Ingress;
  readonly admission: Admission;
  readonly sockets: Sockets;
  readonly drills: Drills;
  /** Answered requests by `route` and `status`. */
  readonly requests: Counter;
  /** From an observation's arrival to the model's start, milliseconds. */
  readonly starts: { readonly chat: Recent; readonly episode: Recent };
  /** From admission to answer of one chunk, milliseconds. */
  readonly chunkMs: number;
}
