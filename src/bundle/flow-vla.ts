/** Family flow-vla (pi0.5, MolmoAct2 and their like): prefill, vision and language, once per observation; denoise once per flow step. */
import { present } from "../std/assert.ts";
import type { Architecture, Facts } from "./architecture.ts";
import { expert, stateIn } from "./expert.ts";
import { expertBlocks, expertContext } from "./expert-attention.ts";
import { commonRules, firstBroken } from "./fault.ts";
import { type Prefix, prefixOf, readInputs, timeInput } from "./flow-vla-inputs.ts";
import { GraphBuilder, type Graphs, type Port, type Value } from "./graph.ts";
import { embedTokens, type KeyValue, language } from "./language.ts";
import { vision } from "./vision.ts";
import type { Weights } from "./weights.ts";

/** Both graphs; `vocabulary` is the number of token ids. */
export function flowVla(facts: Facts, architecture: Architecture, vocabulary: number, weights: Weights): Graphs {
  const prefix = prefixOf(facts, architecture);
  const cached = cachedOf(prefix, architecture, weights);
  const prefill = buildPrefill(facts, prefix, cached, architecture, vocabulary, weights);
  return { prefill, denoise: buildDenoise(facts, prefix, cached, architecture, weights) };
}

/** The first rule that is broken: a JSON path of model.json, what was found there and what was expected. */
export function flowVlaMismatch(facts: Facts, architecture: Architecture, vocabulary: number): string | undefined {
  const { vision: tower, language: prefix, expert: flow } = architecture;
  const { frames, memory, guidance } = facts;
  const last = Math.max(...expertBlocks(architecture).map(({ layer }) => layer));
  const table = prefix.vocabulary ?? vocabulary;
  return firstBroken([
    [frames.first === frames.later, "/frames/first", frames.first, `${frames.later}, as later`],
    [memory === null, "/memory", 1, "null: this family keeps none"],
    [guidance === null, "/guidance", 1, "null: this family has one branch"],
    [tower.width % tower.heads === 0, "/architecture/vision/heads", tower.heads, `a divisor of ${tower.width}`],
    [
      prefix.heads % prefix.kv_heads === 0,
      "/architecture/language/kv_heads",
      prefix.kv_heads,
      `a divisor of ${prefix.heads}`,
    ],
    [table >= vocabulary, "/architecture/language/vocabulary", table, `at least the tokenizer's ${vocabulary}`],
    [prefix.head_dim % 2 === 0, "/architecture/language/head_dim", prefix.head_dim, "an even number"],
    [
      last === prefix.layers - 1,
      "/architecture/expert/blocks",
      last,
      `the last layer, ${prefix.layers - 1}, among those read`,
    ],
    [
      flow.time !== "joined" || flow.time_width === flow.width,
      "/architecture/expert/time_width",
      flow.time_width,
      `the width, ${flow.width}: the time is joined with rows`,
    ],
    ...commonRules(facts, tower.patch, "expert", flow.time_width, tower.shuffle),
  ]);
}

function prefixHasState({ prompt }: Facts, { inputs }: Architecture): boolean {
  if (inputs?.state === "prefix") return true;
  return prompt.parts.some(({ kind }) => kind === "state_tokens" || kind === "template");
}

/** What prefill writes and denoise reads: one cache for each block of the expert. */
interface Cached {
  readonly mask: Port;
  readonly caches: readonly KeyValue<Port>[];
}

function cachedOf({ length }: Prefix, architecture: Architecture, { build }: Weights): Cached {
  const { kv_heads, head_dim } = architecture.language;
  const cache = (name: string): Port => {
    return { name, dtype: build.compute, shape: ["batch", kv_heads, length, head_dim] };
  };
  const caches = expertBlocks(architecture).map((_, block) => {
    return { k: cache(`past_k_${block}`), v: cache(`past_v_${block}`) };
  });
  const mask: Port = { name: "prefix_mask", dtype: "bool", shape: ["batch", length] };
  return { mask, caches };
}

/** Pictures and prompt → prefix_mask, past_k_i, past_v_i. */
function buildPrefill(
  facts: Facts,
  prefix: Prefix,
  cached: Cached,
  architecture: Architecture,
  vocabulary: number,
  weights: Weights,
): GraphBuilder {
  const graph = new GraphBuilder("prefill", facts, weights);
  const { images, tokens, state, valid, blocks } = readInputs(graph, facts, prefix, architecture);
  const seen = vision(graph, images, prefix.views.length, facts, architecture);
  const { width: columns, vocabulary: ids = vocabulary } = architecture.language;
  const read = embedTokens(graph, tokens, ids, architecture.language);
  const told = state === undefined ? [] : [prefixToken(graph, state, facts, columns)];
  const embedded = graph.op("Concat", [seen, read, ...told], { axis: 1 });
  const mask = valid();
  const whole = { embedded, most: prefix.most, valid: mask, blocks: blocks() };
  const caches = expertContext(graph, language(graph, whole, architecture), architecture);

  graph.output(mask, cached.mask, "cache");
  cached.caches.forEach(({ k, v }, block) => {
    const cache = present(caches[block], "cache of a block");
    graph.output(cache.k, k, "cache");
    graph.output(cache.v, v, "cache");
  });
  return graph;
}

/** The state f32 [B, state width] as a token of the prefix, [B, 1, width]. */
function prefixToken(graph: GraphBuilder, state: Value, facts: Facts, width: number): Value {
  const token = graph.within("language", () => stateIn(graph, state, facts, width));
  return graph.inner(graph.op("Unsqueeze", [token, graph.ints([1])]));
}

/** x_t, t, the prefix cache and, if the prefix does not contain it, the state → v_t: one flow step. */
function buildDenoise(
  facts: Facts,
  prefix: Prefix,
  cached: Cached,
  architecture: Architecture,
  weights: Weights,
): GraphBuilder {
  const graph = new GraphBuilder("denoise", facts, weights);
  const rows: Port["shape"] = ["batch", facts.action.rows, facts.action.width];
  const latent = graph.input({ name: "x_t", dtype: "f32", shape: rows }, "latent");
  const time = timeInput(graph, facts, architecture);
  const prefixMask = graph.input(cached.mask, "cache");
  const caches = cached.caches.map(({ k, v }) => ({ k: graph.input(k, "cache"), v: graph.input(v, "cache") }));
  const state = prefixHasState(facts, architecture)
    ? undefined
    : graph.input({ name: "state", dtype: "f32", shape: ["batch", facts.state.width] }, "state");
  const velocity = expert(
    graph,
    { latent, time, state, prefixMask, prefixMax: prefix.most, caches },
    facts,
    architecture,
  );
  graph.output(velocity, { name: "v_t", dtype: "f32", shape: rows }, "velocity");
  return graph;
}
