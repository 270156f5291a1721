/** `tendon_start_ms` of a service: from the arrival of an observation to its model's start, over the last 1024 of a route. */
import type { Child } from "../src/measure/child.ts";

export interface ModelStart {
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

/** NaN for a figure that is missing. */
export async function modelStart({ opsUrl }: Child, route: "chat" | "episode"): Promise<ModelStart> {
  const metrics = await (await fetch(`${opsUrl}/metrics`)).text();
  const at = (quantile: string) =>
    Number(new RegExp(`^tendon_start_ms\\{route="${route}",quantile="${quantile}"\\} (.+)$`, "m").exec(metrics)?.[1]);
  return { p50: at("0.5"), p99: at("0.99"), max: at("1") };
}
