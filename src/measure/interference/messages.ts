/** What the thread of a robot's neighbours is told, and what it says. */
import type { KindName, Neighborhood } from "./kinds.ts";

export type ToNeighbors =
  | { readonly type: "start"; readonly kind: KindName; readonly at: Neighborhood }
  | { readonly type: "stop" }
  | { readonly type: "end" };

export type FromNeighbors =
  | { readonly type: "ready"; readonly providerOrigin: string }
  | { readonly type: "started" }
  /** `failed`: requests whose work was not done. */
  | { readonly type: "stopped"; readonly perSecond: number; readonly failed: number }
  | { readonly type: "ended" };
