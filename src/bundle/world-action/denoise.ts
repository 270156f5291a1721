/** Denoise: one flow step of the next latent frames and the action rows together, on the memory and the newest block. */
import { present } from "../../std/assert.ts";
import { FINAL_PARTS, modulation, stateIn, timeCondition } from "../expert.ts";
import { GraphBuilder } from "../graph.ts";
import { linear, rmsScale, tiedOut } from "../layers.ts";
import type { Weights } from "../weights.ts";
import { lengthInput, memoryInput, type Plan } from "./plan.ts";
import {
  angles,
  branched,
  frameIndex,
  framePositions,
  latentTokens,
  lengthScores,
  PERIOD_MIN,
  transform,
} from "./transformer.ts";

/** Noisy rows, noisy latent frames, time, state, memory and block → both velocities: one flow step. */
export function buildDenoise(plan: Plan, weights: Weights): GraphBuilder {
  const { facts, memory, size, branches } = plan;
  const { rows, width: actionWidth } = facts.action;
  const graph = new GraphBuilder("denoise", facts, weights);
  const video = memory.later * memory.tokens;
  const latent = graph.input({ name: "x_t", dtype: "f32", shape: [1, rows, actionWidth] }, "latent");
  const videoLatent = graph.input({ name: "z_t", dtype: "f32", shape: [1, video, size.channels] }, "video_latent");
  const time = graph.input({ name: "t", dtype: "f32", shape: [1] }, "time");
  const state = graph.input({ name: "state", dtype: "f32", shape: [1, facts.state.width] }, "state");
  const context = graph.input(plan.context, "cache");
  const contextMask = graph.input(plan.contextMask, "cache");
  const memoryLength = lengthInput(graph, "memory");
  const blockLength = lengthInput(graph, "block");
  const past = plan.blocks.map((block) => [
    memoryInput(graph, plan, block),
    { k: graph.input(block.k, "block"), v: graph.input(block.v, "block") },
  ]);
  const count = video + 1 + rows;
  const [velocity, videoVelocity] = graph.within("world", () => {
    const told = stateIn(graph, state, facts, size.width);
    const acting = linear(graph, "action_in", latent, { from: actionWidth, to: size.width, bias: true });
    const placed = graph.op("Add", [acting, graph.weight("rows", [rows, size.width], { fanIn: 1, gain: 0.5 })]);
    const parts = [
      latentTokens(graph, plan, videoLatent, memory.later),
      graph.op("Unsqueeze", [told, graph.ints([1])]),
      placed,
    ];
    const condition = timeCondition(graph, time, size.time_width, PERIOD_MIN);
    // The rows are spread evenly over the frames that are predicted.
    const spread = Array.from({ length: rows }, (_, row) => (row / rows) * memory.later);
    const start = frameIndex(graph, graph.op("Add", [memoryLength, blockLength]), memory.tokens);
    const x = transform(graph, plan, {
      x: branched(graph, graph.op("Concat", parts, { axis: 1 }), branches),
      count,
      angles: angles(graph, plan, [...framePositions(memory.later, memory.tokens), 0, ...spread], start),
      condition,
      past: (layer) => present(past[layer], "what a layer remembers"),
      scores: graph.op(
        "Concat",
        [
          lengthScores(graph, memoryLength, plan.window, count),
          lengthScores(graph, blockLength, plan.block, count),
          graph.floats("scores.own", [1, 1, count, count], new Float32Array(count * count)),
        ],
        { axis: 3 },
      ),
      context,
      contextMask,
    });
    const [scale, shift] = graph.within("final", () => modulation(graph, condition, size, FINAL_PARTS));
    const normed = graph.op("Add", [rmsScale(graph, x, scale), shift]);
    const [seen, , done] = graph.split(normed, 1, [video, 1, rows]);
    return [
      tiedOut(graph, "action", present(done, "rows"), { hidden: size.width, width: actionWidth, flow: facts.flow }),
      tiedOut(graph, "latent", present(seen, "frames"), { hidden: size.width, width: size.channels, flow: facts.flow }),
    ] as const;
  });
  graph.output(velocity, { name: "v_t", dtype: "f32", shape: [branches, rows, actionWidth] }, "velocity");
  const videoShape = [branches, video, size.channels];
  graph.output(videoVelocity, { name: "w_t", dtype: "f32", shape: videoShape }, "video_velocity");
  return graph;
}
