/**
 * A language model of some 100 kB with random weights, as a file for llama.cpp; the same bytes each time. What it says means
 * nothing, but it is text, ends by itself, calls a tool when it is offered some, and under a grammar soon closes what it opened.
 */
import { RandomStream } from "../../src/std/random.ts";
import { gguf, type Tensor, type Value } from "./gguf.ts";
import { ANSWER_OR_CALL, biases, END, LINE_FEED, MERGES, PAD, TOKEN_TYPES, TOKENS, TOOL_CALL } from "./tiny-tokens.ts";

const WIDTH = 32;
const HEADS = 2;
const INNER = 64;
const CONTEXT = 32_768;
/** Dimensions of the residual that no layer writes: one that is the same everywhere, and two that one token has alone. */
const PILOT = 0;
const CALLING = 1;
const BEGINNING = 2;
const RESERVED = 3;
const HEIGHT = 3;
/** Root mean square of the residual after the last layer, about: what its norm divides by. */
const SPREAD = 1.1;
/** Above all else together, whatever the noise. */
const SURELY = 30;

/** The chat template. Its form of a call is one for which llama.cpp derives a grammar that such a model can follow. */
const TEMPLATE = `
{%- if tools -%}
  {{- '<|im_start|>system\\n<tools>' -}}
  {%- for tool in tools -%}{{- '\\n' -}}{{- tool | tojson -}}{%- endfor -%}
  {{- '\\n</tools><|im_end|>\\n' -}}
{%- endif -%}
{%- for message in messages -%}
  {{- '<|im_start|>' + message.role + '\\n' -}}
  {%- if message.content -%}{{- message.content -}}{%- endif -%}
  {%- for call in message.tool_calls or [] -%}
    {{- '<tool_call>' + call.function.name + '(' -}}
    {%- if call.function.arguments is string -%}{{- call.function.arguments -}}
    {%- else -%}{{- call.function.arguments | tojson -}}{%- endif -%}
    {{- ')</tool_call>' -}}
  {%- endfor -%}
  {{- '<|im_end|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}
  {{- '<|im_start|>assistant\\n' -}}
  {%- if tools and messages[-1].role != 'tool' -%}{{- '<answer_or_call>' -}}{%- endif -%}
{%- endif -%}
`.trim();

export function tinyModel(): Uint8Array {
  const u32 = (value: number): Value => ({ kind: "u32", value });
  return gguf(
    {
      "general.architecture": { kind: "string", value: "llama" },
      "general.name": { kind: "string", value: "tiny" },
      "llama.context_length": u32(CONTEXT),
      "llama.embedding_length": u32(WIDTH),
      "llama.block_count": u32(1),
      "llama.feed_forward_length": u32(INNER),
      "llama.attention.head_count": u32(HEADS),
      "llama.attention.head_count_kv": u32(HEADS),
      "llama.attention.layer_norm_rms_epsilon": { kind: "f32", value: 1e-5 },
      "llama.rope.dimension_count": u32(WIDTH / HEADS),
      "llama.vocab_size": u32(TOKENS.length),
      "tokenizer.ggml.model": { kind: "string", value: "gpt2" },
      "tokenizer.ggml.pre": { kind: "string", value: "gpt-2" },
      "tokenizer.ggml.tokens": { kind: "strings", value: TOKENS },
      "tokenizer.ggml.token_type": { kind: "i32s", value: TOKEN_TYPES },
      "tokenizer.ggml.merges": { kind: "strings", value: MERGES },
      "tokenizer.ggml.eos_token_id": u32(TOKENS.indexOf(END)),
      "tokenizer.ggml.padding_token_id": u32(TOKENS.indexOf(PAD)),
      "tokenizer.ggml.add_bos_token": { kind: "bool", value: false },
      "tokenizer.chat_template": { kind: "string", value: TEMPLATE },
    },
    tensors(),
  );
}

function tensors(): Tensor[] {
  const ones = { columns: WIDTH, data: new Float32Array(WIDTH).fill(1) };
  return [
    { name: "token_embd.weight", columns: WIDTH, data: embedding() },
    { name: "output_norm.weight", ...ones },
    { name: "output.weight", columns: WIDTH, data: output() },
    { name: "blk.0.attn_norm.weight", ...ones },
    ...["attn_q", "attn_k", "attn_v"].map((name) => matrix(`blk.0.${name}.weight`, WIDTH, WIDTH)),
    writes(matrix("blk.0.attn_output.weight", WIDTH, WIDTH, 0.5)),
    { name: "blk.0.ffn_norm.weight", ...ones },
    matrix("blk.0.ffn_gate.weight", INNER, WIDTH),
    matrix("blk.0.ffn_up.weight", INNER, WIDTH),
    writes(matrix("blk.0.ffn_down.weight", WIDTH, INNER, 0.5)),
  ];
}

/** Uniform numbers of variance `scale`² / columns: a vector of ones' size keeps it. */
function matrix(name: string, rows: number, columns: number, scale = 1): Tensor {
  const stream = new RandomStream(`tiny model ${name}`);
  const reach = scale * Math.sqrt(3 / columns);
  return { name, columns, data: Float32Array.from({ length: rows * columns }, () => stream.signed() * reach) };
}

/** A matrix that writes into the residual leaves the reserved dimensions alone. */
function writes(tensor: Tensor): Tensor {
  tensor.data.fill(0, 0, RESERVED * tensor.columns);
  return tensor;
}

function embedding(): Float32Array {
  // √WIDTH: entries of variance 1.
  const { data } = matrix("token_embd.weight", TOKENS.length, WIDTH, Math.sqrt(WIDTH));
  for (const [index, token] of TOKENS.entries()) {
    data[index * WIDTH + PILOT] = HEIGHT;
    data[index * WIDTH + CALLING] = token === ANSWER_OR_CALL ? HEIGHT : 0;
    // Prompts end with it and answers have none, so that none is empty.
    data[index * WIDTH + BEGINNING] = token === LINE_FEED ? HEIGHT : 0;
  }
  return data;
}

/** Since the pilot is the same everywhere, its column adds a bias to each token, which this architecture itself has not. */
function output(): Float32Array {
  const { data } = matrix("output.weight", TOKENS.length, WIDTH);
  const bias = biases();
  const unit = SPREAD / HEIGHT;
  for (const [index, token] of TOKENS.entries()) {
    data[index * WIDTH + PILOT] = (bias[index] ?? 0) * unit;
    data[index * WIDTH + CALLING] = token === TOOL_CALL ? SURELY * unit : 0;
    data[index * WIDTH + BEGINNING] = token === END ? -SURELY * unit : 0;
  }
  return data;
}
