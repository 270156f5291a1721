/** Whether a manifest says how its chunk is made: by a flow and the graph of its steps, or by one graph without noise. */
import { firstBroken } from "./fault.ts";
import type { Manifest } from "./manifest.ts";

/** The first contradiction, as `contradiction` says it. */
export function checkFlow({ flow, graphs, memory, action }: Manifest): string | undefined {
  const hasSteps = graphs.denoise !== undefined;
  const [found, expected] = hasSteps ? ["a graph", "nothing, without a flow"] : ["nothing", "a graph, for the flow"];
  const graphFault = firstBroken([[hasSteps === (flow !== null), "/graphs/denoise", found, expected]]);
  if (graphFault !== undefined) return graphFault;
  if (flow === null) {
    return firstBroken([
      [memory === null, "/memory", "a memory", "null, without a flow"],
      [action.prefix === undefined, "/action/prefix", action.prefix, "nothing, without a flow"],
    ]);
  }
  const isInside = flow.shift === 1 || [flow.t_start, flow.t_end].every((t) => t >= 0 && t <= 1);
  return firstBroken([
    [isInside, "/flow/shift", flow.shift, "1, or times from 0 to 1"],
    [flow.t_start !== flow.t_end, "/flow/t_end", flow.t_end, "another time than t_start"],
  ]);
}
