/** Whether a manifest says how its chunk is made: by a flow and the graph of its steps, or by one graph without noise. */
import { firstBroken, type Rule } from "./fault.ts";
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
    ...timeRules(flow),
  ]);
}

/** The listed times of a flow: one for each step and the end, from start to end, as float32 has them. */
function timeRules({ times, t_start, t_end, steps, shift }: NonNullable<Manifest["flow"]>): Rule[] {
  if (times === undefined) return [];
  const [first = Number.NaN, last = Number.NaN] = [times[0], times.at(-1)];
  const late = times.findIndex((time, index) => (time - (times[index - 1] ?? Number.NaN)) * (t_end - t_start) <= 0);
  const double = times.findIndex((time) => Math.fround(time) !== time);
  return [
    [times.length === steps + 1, "/flow/times", `${times.length} times`, `${steps + 1}, one more than steps`],
    [double < 0, `/flow/times/${double}`, times[double], "a float32 value"],
    [first === t_start, "/flow/times/0", first, `t_start, ${t_start}`],
    [late < 0, `/flow/times/${late}`, times[late], `a time nearer to t_end, ${t_end}, than the one before`],
    [Math.abs(last - t_end) < 1e-5, `/flow/times/${times.length - 1}`, last, `t_end, ${t_end}, but for rounding`],
    [shift === 1, "/flow/shift", shift, "1, where the times are listed"],
  ];
}
