/** Denoise: one flow step of the next latent frames and the action rows together, on the memory and the newest block. */
import { present } from "../../std/assert.ts";
import { FINAL_PARTS, modulation, timeCondition } from "../expert.ts";
import { type Built, openPort } from "../family.ts";
import { GraphBuilder, type Port } from "../graph.ts";
import { linear, rmsScale, tiedOut } from "../layers.ts";
import type { Weights } from "../weights.ts";
import { blockPorts, memoryInputs, memoryPort, type Plan } from "./plan.ts";
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

/** How strongly the state counts beside the rows. */
const STATE_GAIN = 1.5;

/** Noisy rows, noisy latent frames, time, state, memory and block → both velocities: one flow step. */
export function buildDenoise(plan: Plan, weights: Weights): Built {
  const { facts, memory, size, branches } = plan;
  const { rows, width: actionWidth } = facts.action;
  const graph = new GraphBuilder("denoise", plan.about, weights);
  const video = memory.later * memory.tokens;
  const ports = {
    latent: { name: "x_t", dtype: "f32", shape: [1, rows, actionWidth] },
    videoLatent: { name: "z_t", dtype: "f32", shape: [1, video, size.channels] },
    time: { name: "t", dtype: "f32", shape: [1] },
    state: { name: "state", dtype: "f32", shape: [1, facts.state.width] },
    blockLength: { name: "block_length", dtype: "i64", shape: [1] },
    velocity: { name: "v_t", dtype: "f32", shape: [branches, rows, actionWidth] },
    videoVelocity: { name: "w_t", dtype: "f32", shape: [branches, video, size.channels] },
  } as const satisfies Record<string, Port>;
  const latent = graph.input(ports.latent);
  const videoLatent = graph.input(ports.videoLatent);
  const time = graph.input(ports.time);
  const state = graph.input(ports.state);
  const context = graph.input(plan.context);
  const contextMask = graph.input(plan.contextMask);
  const memoryLength = graph.input(plan.memoryLength);
  const blockLength = graph.input(ports.blockLength);
  const past = plan.blocks.map(({ k, v }) => [
    { k: graph.input(memoryPort(plan, k)), v: graph.input(memoryPort(plan, v)) },
    { k: graph.input(k), v: graph.input(v) },
  ]);
  const count = video + 1 + rows;
  const towards = facts.flow.t_end > facts.flow.t_start ? 1 : -1;
  const [velocity, videoVelocity] = graph.within("world", () => {
    const told = linear(graph, "state_in", state, {
      from: facts.state.width,
      to: size.width,
      bias: true,
      gain: STATE_GAIN,
    });
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
      tiedOut(graph, "action", present(done, "rows"), { hidden: size.width, width: actionWidth, towards }),
      tiedOut(graph, "latent", present(seen, "frames"), { hidden: size.width, width: size.channels, towards }),
    ];
  });
  graph.output(present(velocity, "a velocity"), ports.velocity);
  graph.output(present(videoVelocity, "a velocity"), ports.videoVelocity);
  return {
    bytes: graph.bytes(),
    description: {
      file: "denoise.onnx",
      inputs: [
        { ...openPort(ports.latent), role: "latent" },
        { ...openPort(ports.videoLatent), role: "video_latent" },
        { ...openPort(ports.time), role: "time" },
        { ...openPort(ports.state), role: "state" },
        ...[plan.context, plan.contextMask].map((port) => ({
          ...openPort(port),
          role: "cache" as const,
          from: port.name,
        })),
        ...memoryInputs(plan),
        { ...openPort(ports.blockLength), role: "block_length" },
        ...blockPorts(plan).map((port) => ({ ...openPort(port), role: "block" as const, from: port.name })),
      ],
      outputs: [
        { ...openPort(ports.velocity), role: "velocity" },
        { ...openPort(ports.videoVelocity), role: "video_velocity" },
      ],
    },
  };
}
