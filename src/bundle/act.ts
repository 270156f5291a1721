/**
 * Family act: Action Chunking with Transformers (arXiv 2304.13705) as LeRobot has it. One graph reads pictures and state and gives the
 * normalised chunk: no noise, no steps, no instruction.
 *
 * Shapes: B batch, V views, P pixels of a feature map, N tokens [latent, state, environment, V · P pixels], W width.
 */
import type { PlainFacts } from "./architecture.ts";
import { attend, joinedHeads, type Part } from "./attention.ts";
import { firstBroken } from "./fault.ts";
import { GraphBuilder, type Graphs, type Value } from "./graph.ts";
import { imageInput } from "./image-input.ts";
import { blockLinear, layerNorm, linear } from "./layers.ts";
import { convolution, featureChannels, featureEdge, type ResNet, resnet } from "./resnet.ts";
import { sinePositions } from "./sine-positions.ts";
import { SLIGHT, type Weights } from "./weights.ts";

export interface ActArchitecture {
  /** Names of the cameras in the policy's order. */
  readonly views: readonly string[];
  readonly backbone: ResNet;
  readonly width: number;
  readonly heads: number;
  readonly mlp: number;
  readonly encoder_layers: number;
  readonly decoder_layers: number;
  /** A norm stands before attention and MLP, and one behind the encoder; else behind each sum. */
  readonly pre_norm: boolean;
  readonly activation: "relu" | "gelu";
  /** Columns of the state that are the environment's: the last ones, with a token of their own. */
  readonly environment: number;
  /** For each view, where they differ: (value / 255 − mean) / std of each channel, in the graph; `image.mean` is 0 and `image.std` 1 then. */
  readonly pictures?: readonly { readonly mean: readonly number[]; readonly std: readonly number[] }[];
}

/** PyTorch's default. */
const NORM_EPSILON = 1e-5;

/** The graph; `actMismatch` has found nothing. */
export function act(facts: PlainFacts, architecture: ActArchitecture, weights: Weights): Graphs {
  const graph = new GraphBuilder("prefill", facts, weights);
  const { image, state, action } = facts;
  const { width, height } = image;
  const { views } = architecture;
  const shown = { name: "images", lead: ["batch", views.length] as const, width, height, cameras: views };
  const pictures = imageInput(graph, shown, image);
  const values = graph.input({ name: "state", dtype: "f32", shape: ["batch", state.width] }, "state");
  const read = encoder(graph, tokens(graph, pictures, values, facts, architecture), architecture);
  const done = decoder(graph, read, action.rows, architecture);
  const rows = linear(graph, "head", graph.single(done), { from: architecture.width, to: action.width, bias: true });
  graph.output(rows, { name: "actions", dtype: "f32", shape: ["batch", action.rows, action.width] }, "actions");
  return { prefill: graph };
}

/** The first rule that is broken: a JSON path of the manifest, what was found there and what was expected. */
export function actMismatch({ frames, memory, guidance, image, state }: PlainFacts, size: ActArchitecture) {
  const { width, heads, environment, backbone } = size;
  const pixels = featureEdge(image.width, backbone) * featureEdge(image.height, backbone);
  const first = backbone.stages[0]?.channels;
  return firstBroken([
    [frames.first === 1 && frames.later === 1, "/frames", frames, "one frame of each camera"],
    [memory === null, "/memory", 1, "null: this family keeps none"],
    [guidance === null, "/guidance", 1, "null: this family has one branch"],
    [width % heads === 0, "/architecture/heads", heads, `a divisor of ${width}`],
    // Half of the columns are of the row, half of the column, and both have pairs of a sine and a cosine.
    [width % 4 === 0, "/architecture/width", width, "a multiple of 4"],
    // Two convolutions bring no other channels to what they are added to in the first stage.
    [
      backbone.bottleneck || first === backbone.stem,
      "/architecture/backbone/stages/0/channels",
      first,
      `${backbone.stem}, as the first convolution has`,
    ],
    [image.tokens === pixels, "/image/tokens", image.tokens, `${pixels}, the pixels of a feature map`],
    [environment < state.width, "/architecture/environment", environment, `less than ${state.width} state values`],
  ]);
}

interface Tokens {
  /** [B, N, W] */
  readonly values: Value;
  /** [N, W], added to what asks and to what is asked, not to what is read. */
  readonly places: Value;
}

/** `latent.bias`, `state`, `environment`, `backbone`, `pixels`; `places` [tokens before the pixels, W]. */
function tokens(graph: GraphBuilder, pictures: Value, state: Value, facts: PlainFacts, size: ActArchitecture): Tokens {
  const { width, environment, backbone } = size;
  const views = size.views.length;
  const [edgeX, edgeY] = [featureEdge(facts.image.width, backbone), featureEdge(facts.image.height, backbone)];
  const normal = size.pictures ? normalised(graph, pictures, size.pictures) : pictures;
  const flat = graph.inner(graph.reshape(normal, [-1, 3, facts.image.height, facts.image.width]));
  const seen = resnet(graph, flat, backbone);
  const maps = convolution(graph, "pixels", seen, { from: featureChannels(backbone), to: width, kernel: 1 });
  const pixels = graph.transpose(graph.reshape(maps, [0, width, edgeX * edgeY]), [0, 2, 1]);
  const robot = facts.state.width - environment;
  const parts = environment === 0 ? [state] : graph.split(state, 1, [robot, environment]);
  const told = ["state", "environment"].slice(0, parts.length).map((name, index) => {
    const from = index === 0 ? robot : environment;
    const token = linear(graph, name, parts[index] ?? "", { from, to: width, bias: true });
    return graph.inner(graph.op("Unsqueeze", [token, graph.ints([1])]));
  });
  const all = graph.op("Concat", [...told, graph.reshape(pixels, [-1, views * edgeX * edgeY, width])], { axis: 1 });
  // The latent is zeros outside of training: its token is a bias, in a place before the others.
  const count = told.length + views * edgeX * edgeY;
  const latent = graph.reshape(graph.weight("latent.bias", [width], SLIGHT), [1, width]);
  // CUDA has no Pad of bfloat16.
  const padded = (value: Value, pads: readonly number[]) => graph.op("Pad", [graph.single(value), graph.ints(pads)]);
  const values = graph.op("Add", [padded(all, [0, 1, 0, 0, 0, 0]), padded(latent, [0, 0, count, 0])]);
  const learned = graph.weight("places", [1 + told.length, width], { fanIn: 1 });
  const sines = graph.inner(graph.floats("places.pixels", [edgeX * edgeY, width], sinePositions(edgeX, edgeY, width)));
  return {
    values: graph.inner(values),
    places: graph.op("Concat", [learned, ...Array<Value>(views).fill(sines)], { axis: 0 }),
  };
}

/** Views [B, V, 3, h, w], each by its own mean and deviation. */
function normalised(graph: GraphBuilder, pictures: Value, views: NonNullable<ActArchitecture["pictures"]>): Value {
  const each = (what: "mean" | "std") => {
    const values = Float32Array.from(views.flatMap((view) => view[what]));
    return graph.floats(`pictures.${what}`, [views.length, 3, 1, 1], values);
  };
  return graph.within("pictures", () => graph.op("Div", [graph.op("Sub", [pictures, each("mean")]), each("std")]));
}

function encoder(graph: GraphBuilder, { values, places }: Tokens, size: ActArchitecture): Tokens {
  return graph.within("encoder", () => {
    let x = values;
    for (let layer = 0; layer < size.encoder_layers; layer += 1) {
      graph.within(`layers.${layer}`, () => {
        x = added(graph, "norm1", x, size, (one) => {
          const { asks, asked } = { asks: { values: one, places }, asked: { values: one, places } };
          return attention(graph, "attention", asks, asked, size);
        });
        x = added(graph, "norm2", x, size, (one) => feedForward(graph, one, size));
      });
    }
    return { values: size.pre_norm ? norm(graph, "norm", x, size) : x, places };
  });
}

/** [B, rows, W]. The queries of the first layer are zeros with learned places: what depends on them alone is computed once, at load. */
function decoder(graph: GraphBuilder, read: Tokens, rows: number, size: ActArchitecture): Value {
  return graph.within("decoder", () => {
    const places = graph.weight("places", [rows, size.width], { fanIn: 1 });
    let x = graph.filled("decoder.queries", [1, rows, size.width], graph.build.compute, 0);
    for (let layer = 0; layer < size.decoder_layers; layer += 1) {
      graph.within(`layers.${layer}`, () => {
        x = added(graph, "norm1", x, size, (values) => {
          return attention(graph, "attention", { values, places }, { values, places }, size);
        });
        x = added(graph, "norm2", x, size, (values) => attention(graph, "cross", { values, places }, read, size));
        x = added(graph, "norm3", x, size, (one) => feedForward(graph, one, size));
      });
    }
    return norm(graph, "norm", x, size);
  });
}

/** x + part(norm(x)), or norm(x + part(x)). */
function added(graph: GraphBuilder, name: string, x: Value, size: ActArchitecture, part: (x: Value) => Value): Value {
  if (size.pre_norm) return graph.op("Add", [x, part(norm(graph, name, x, size))]);
  return norm(graph, name, graph.op("Add", [x, part(x)]), size);
}

/** `asks` attends to `asked`: `query`, `key`, `value`, `output`, each [W, W] with a bias. */
function attention(graph: GraphBuilder, name: string, asks: Tokens, asked: Tokens, size: ActArchitecture): Value {
  const { width, heads } = size;
  const shape = { heads, kvHeads: heads, headDim: width / heads };
  const part = (name: string): Part => ({ name, heads, gain: 1 });
  const projected = (x: Value, parts: readonly Part[]) => {
    return joinedHeads(graph, x, parts, { from: width, headDim: shape.headDim, bias: true });
  };
  const placed = ({ values, places }: Tokens) => graph.op("Add", [values, places]);
  return graph.within(name, () => {
    const own = asks.values === asked.values;
    const both = own ? projected(placed(asks), [part("query"), part("key")]) : undefined;
    const [q, k] = both
      ? (graph.split(both, 1, [heads, heads]) as [Value, Value])
      : [projected(placed(asks), [part("query")]), projected(placed(asked), [part("key")])];
    const v = projected(asked.values, [part("value")]);
    const mixed = attend(graph, { q, k, v }, shape);
    return blockLinear(graph, "output", mixed, { from: width, to: width, bias: true, inner: true });
  });
}

function feedForward(graph: GraphBuilder, x: Value, { width, mlp, activation }: ActArchitecture): Value {
  const hidden = blockLinear(graph, "up", x, { from: width, to: mlp, bias: true, inner: true });
  const active = graph.op(activation === "relu" ? "Relu" : "Gelu", [hidden]);
  return blockLinear(graph, "down", active, { from: mlp, to: width, bias: true, inner: true });
}

function norm(graph: GraphBuilder, name: string, x: Value, { width }: ActArchitecture): Value {
  return layerNorm(graph, name, x, width, NORM_EPSILON);
}
