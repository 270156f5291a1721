/** The transformer that all graphs of a world-action model run, and how its tokens are made, placed in time and masked. */
import { attend, attendAll, type KeySpan, MASKED, maskScores, SHARP_ATTENTION, splitHeads } from "../attention.ts";
import { type Condition, modulation } from "../flow-condition.ts";
import type { GraphBuilder, Value } from "../graph.ts";
import { type KeyValue, keyValue, queryKeyValue } from "../language.ts";
import { blockLinear, gatedMlp, linear, rmsNorm, rmsScale, rotation } from "../layers.ts";
import { BLOCK_PARTS } from "../sublayer.ts";
import type { Plan } from "./plan.ts";

/** Shortest wavelength of the time embedding: float32 cannot tell times that are closer. */
export const PERIOD_MIN = 4e-2;

/** Latent frames [1, N, channels] → tokens [1, N, width], with the learned embedding of each place in the frame. */
export function latentTokens(graph: GraphBuilder, plan: Plan, latent: Value, latents: number): Value {
  const { size, memory } = plan;
  const x = linear(graph, "latent_in", latent, { from: size.channels, to: size.width, bias: true });
  const places = graph.weight("places", [memory.tokens, size.width], { fanIn: 1, gain: 0.5 }, "f32");
  const all = latents === 1 ? places : graph.op("Concat", Array(latents).fill(places), { axis: 0 });
  return graph.op("Add", [x, all]);
}

interface Pass {
  /** [R, N, width], f32. */
  readonly x: Value;
  /** N. */
  readonly count: number;
  readonly angles: ReturnType<typeof rotation>;
  readonly condition: Condition;
  /** Earlier keys and values that a layer attends to besides its own, [R, heads, M, D] each. */
  readonly past: (layer: number) => readonly KeySpan[];
  /** [1, 1, N, all keys]. */
  readonly scores: Value;
  /** What a layer attends to of the text, and [R, T]. */
  readonly text: (layer: number) => KeyValue;
  readonly textMask: Value;
  /** Receives each layer's own keys and values; with it the output of the last layer is not computed. */
  readonly keep?: (own: KeyValue) => void;
}

/** Keys and values of the text [R, T, width] for every layer: they depend on nothing else. */
export function textKeyValues(graph: GraphBuilder, { size }: Plan, text: Value): KeyValue[] {
  const { width, heads, head_dim: headDim, layers } = size;
  return Array.from({ length: layers }, (_, layer) =>
    graph.within(`blocks.${layer}.text`, () => {
      const project = (name: string, gain: number) =>
        splitHeads(graph, blockLinear(graph, name, text, { from: width, to: heads * headDim, gain }), heads, headDim);
      return { k: project("key", SHARP_ATTENTION), v: project("value", 1) };
    }),
  );
}

/** All blocks: attention over past and present, attention to the text, gated MLP; scaled, shifted and gated by the time. */
export function transform(graph: GraphBuilder, plan: Plan, pass: Pass): Value {
  const { size } = plan;
  const { width, heads, head_dim: headDim, layers } = size;
  const all = { heads, kvHeads: heads, headDim };
  const inner = heads * headDim;
  const project = (name: string, x: Value, gain = SHARP_ATTENTION) =>
    splitHeads(graph, blockLinear(graph, name, x, { from: width, to: inner, gain }), heads, headDim);
  const textScores = maskScores(graph, pass.textMask);
  let x = graph.inner(pass.x);
  for (let layer = 0; layer < layers; layer += 1) {
    x = graph.within(`blocks.${layer}`, () => {
      const [scale1, shift1, gate1, scale2, shift2, gate2] = modulation(graph, pass.condition, size, BLOCK_PARTS);
      const normed = graph.op("Add", [rmsScale(graph, x, scale1), shift1]);
      if (pass.keep && layer === layers - 1) {
        pass.keep(keyValue(graph, normed, width, all, pass.angles));
        return x;
      }
      const { q, ...own } = queryKeyValue(graph, normed, width, all, pass.angles);
      pass.keep?.(own);
      const mixed = attendAll(
        graph,
        { q, seen: [...pass.past(layer), { ...own, count: pass.count }], scores: pass.scores },
        all,
      );
      const attended = graph.op("Mul", [blockLinear(graph, "output", mixed, { from: inner, to: width }), gate1]);
      const middle = graph.op("Add", [x, attended]);
      const told = graph.within("text", () => {
        const asking = project("query", rmsNorm(graph, "norm", middle, width));
        const read = attend(graph, { q: asking, ...pass.text(layer), scores: textScores }, all);
        return graph.op("Add", [middle, blockLinear(graph, "output", read, { from: inner, to: width })]);
      });
      const fed = graph.op("Add", [rmsScale(graph, told, scale2), shift2]);
      return graph.op("Add", [told, graph.op("Mul", [gatedMlp(graph, fed, width, size.mlp), gate2])]);
    });
  }
  return x;
}

/** [1, N, W] → [branches, N, W]. */
export function branched(graph: GraphBuilder, x: Value, branches: number): Value {
  return branches === 1 ? x : graph.op("Concat", Array(branches).fill(x), { axis: 0 });
}

/** Scores [1, 1, count, size] that hide all but the first `length` i64 [1] of `size` keys. */
export function lengthScores(graph: GraphBuilder, length: Value, size: number, count: number): Value {
  const indices = graph.ints(Array.from({ length: size }, (_, index) => index));
  const scores = graph.op("Where", [graph.op("Less", [indices, length]), graph.scalar(0), graph.scalar(MASKED)]);
  return graph.op("Expand", [graph.reshape(scores, [1, 1, 1, size]), graph.ints([1, 1, count, size])]);
}

/** Index of each token's frame. */
export function framePositions(latents: number, tokens: number): number[] {
  return Array.from({ length: latents * tokens }, (_, token) => Math.floor(token / tokens));
}

/** Tokens i64 [1] as a number of frames, f32 [1]. */
export function frameIndex(graph: GraphBuilder, length: Value, tokens: number): Value {
  return graph.op("Mul", [graph.cast(length, "f32"), graph.scalar(1 / tokens)]);
}

/** Angles of the tokens, `offsets` frames from the frame `start` f32 [1], or from frame 0; a row for each branch. */
export function angles(graph: GraphBuilder, plan: Plan, offsets: readonly number[], start: Value | undefined) {
  const own = graph.floats("positions", [1, offsets.length, 1], Float32Array.from(offsets));
  const positions = start === undefined ? own : graph.op("Add", [own, start]);
  return rotation(graph, branched(graph, positions, plan.branches), plan.size.head_dim);
}
