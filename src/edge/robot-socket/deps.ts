/** What a robot's socket works with. */
import type { RobotDeps } from "../../robot/deps.ts";
import type { Durations } from "../../std/metrics.ts";
import type { HttpDeps } from "../http/deps.ts";
import type { Sockets } from "./sockets.ts";

export interface RobotSocketDeps extends HttpDeps, RobotDeps {
  readonly sockets: Sockets;
  /** From an observation's arrival to the model's start, milliseconds. */
  readonly starts: { readonly episode: Durations };
}
