/**
 * What the tokens of a flow's expert attend to: themselves, and keys and values of the language model or projections of these. Shapes: B batch,
 * S tokens of the prefix, T tokens of the expert, W its width, K key-value heads, D head dimension.
 */
import { present } from "../std/assert.ts";
import type { Architecture } from "./architecture.ts";
import {
  type attendAll,
  blockScores,
  type Heads,
  joinedHeads,
  type KeySpan,
  maskScores,
  type Part,
  SHARP_ATTENTION,
} from "./attention.ts";
import type { GraphBuilder, Value } from "./graph.ts";
import { headsOf, type KeyValue, keyValueParts, queryKeyValue, rotate } from "./language.ts";
import { rotationAt } from "./layers.ts";

type Block = NonNullable<Architecture["expert"]["blocks"]>[number];

/** The blocks of an expert: the layer whose keys and values each reads, and what else. */
export function expertBlocks({ expert, language }: Architecture): readonly Block[] {
  return expert.blocks ?? Array.from({ length: language.layers }, (_, layer) => ({ layer }));
}

/** What each block reads of the prefix: one of `caches` [B, K, S, D], or a projection of it, which is the same at every step. */
export function expertContext(
  graph: GraphBuilder,
  caches: readonly KeyValue[],
  architecture: Architecture,
): KeyValue[] {
  const { kvHeads, headDim } = headsOf(architecture);
  const [keys, values] = keyValueParts(kvHeads);
  return expertBlocks(architecture).map(({ layer, reads }, index) => {
    const cache = present(caches[layer], "cache of a layer");
    if (reads === undefined) return cache;
    const projected = (value: Value, part: Part) => {
      // [B, K, S, D] → [B, S, K · D]: the heads of a token side by side.
      const flat = graph.reshape(graph.transpose(value, [0, 2, 1, 3]), [0, 0, kvHeads * headDim]);
      return joinedHeads(graph, flat, [part], { from: kvHeads * headDim, headDim });
    };
    return graph.within(`expert.blocks.${index}.context`, () => {
      return { k: projected(cache.k, keys), v: projected(cache.v, values) };
    });
  });
}

/** The prefix as the expert sees it. */
interface Prefix {
  /** bool [B, S], S at most `prefixMax`. */
  readonly prefixMask: Value;
  readonly prefixMax: number;
}

type Attended = Parameters<typeof attendAll>[1];

/** Makes, from a block, its tokens [B, T, W] and what it reads of the prefix, that which `attendAll` takes. */
export function expertAttention(
  graph: GraphBuilder,
  { prefixMask, prefixMax }: Prefix,
  tokens: number,
  architecture: Architecture,
): (block: Block, x: Value, context: KeyValue) => Attended {
  const heads = headsOf(architecture);
  const { width, rows } = architecture.expert;
  const ofPrefix = maskScores(graph, prefixMask);
  const scores =
    rows === "causal" ? causalScores(graph, prefixMask, tokens, heads) : freeScores(graph, ofPrefix, tokens);
  const positions = tokenPositions(graph, prefixMask, tokens);
  const most = prefixMax + tokens;
  const angles = rotationAt(graph, positions, most, heads);
  const isProjected = expertBlocks(architecture).some(({ reads }) => reads === "prefix");
  const first = isProjected ? rotationAt(graph, fromZero(graph, positions), most, heads) : angles;
  return ({ reads }, x, context) => {
    if (reads === "prefix") {
      const query = { name: "query", heads: heads.heads, gain: SHARP_ATTENTION };
      const q = joinedHeads(graph, x, [query], { from: width, headDim: heads.headDim });
      return { q: rotate(graph, q, first), seen: [context], scores: ofPrefix };
    }
    const { q, ...own } = queryKeyValue(graph, x, width, heads, angles);
    const seen: KeySpan[] = [context, { ...own, count: tokens }];
    return { q, seen, scores };
  };
}

/** Every token sees the whole valid prefix and every token: [B, 1, 1, S + T]. */
function freeScores(graph: GraphBuilder, ofPrefix: Value, tokens: number): Value {
  return graph.op("Pad", [ofPrefix, graph.ints([0, 0, 0, 0, 0, 0, 0, tokens]), graph.scalar(0)]);
}

/** Every token sees the whole valid prefix, itself and those before it: [B, 1, G · T, S + T]. */
function causalScores(graph: GraphBuilder, prefixMask: Value, tokens: number, heads: Heads): Value {
  const mask = graph.cast(prefixMask, "f32");
  const behind = (value: Value) => graph.op("Pad", [value, graph.ints([0, 0, 0, tokens]), graph.scalar(1)]);
  const none = graph.op("Mul", [mask, graph.scalar(0)]);
  // The prefix is block 0, and each token one more than that before it.
  const blocks = graph.op("CumSum", [behind(none), graph.ints([1])]);
  const numbers = Float32Array.from({ length: tokens }, (_, index) => index + 1);
  const asking = graph.floats("expert.blocks", [1, tokens], numbers);
  return blockScores(graph, { valid: graph.cast(behind(mask), "bool"), blocks, asking }, heads);
}

/** Position of token i: valid prefix tokens + i; i64 [B, T]. */
function tokenPositions(graph: GraphBuilder, prefixMask: Value, tokens: number): Value {
  const count = graph.op("ReduceSum", [graph.cast(prefixMask, "f32"), graph.ints([1])], { keepdims: 1 });
  return graph.op("Add", [graph.cast(count, "i64"), graph.ints([...Array(tokens).keys()])]);
}

/** Positions [B, T] less the first one of each row. */
function fromZero(graph: GraphBuilder, positions: Value): Value {
  const first = graph.op("ReduceMin", [positions, graph.ints([1])], { keepdims: 1 });
  return graph.op("Sub", [positions, first]);
}
