/**
 * A residual network (arXiv 1512.03385) up to its last feature map, as torchvision has it. Each batch norm is part of the convolution
 * before it, which therefore has a bias.
 */
import type { GraphBuilder, Value } from "./graph.ts";
import { SLIGHT } from "./weights.ts";

export interface ResNet {
  /** Channels of the first convolution. */
  readonly stem: number;
  /** The stages: their blocks, and the channels inside of each. */
  readonly stages: readonly { readonly blocks: number; readonly channels: number }[];
  /** A block is three convolutions, the outer ones of one pixel, in place of two. */
  readonly bottleneck: boolean;
  /** The last stage keeps the size of its input and has holes in its filters. */
  readonly dilated: boolean;
}

/** Channels that a bottleneck gives, for each that it has inside. */
const EXPANSION = 4;

/** Channels of the feature map. */
export function featureChannels({ stages, bottleneck }: ResNet): number {
  return (stages.at(-1)?.channels ?? 0) * (bottleneck ? EXPANSION : 1);
}

/** Pixels along an edge of the feature map of a picture with `edge` pixels: five times halved, rounded up. */
export function featureEdge(edge: number, { dilated }: ResNet): number {
  return Math.ceil(edge / (dilated ? 16 : 32));
}

/** Pictures f32 [P, 3, h, w] → [P, channels, feature h, feature w]. */
export function resnet(graph: GraphBuilder, pictures: Value, { stem, stages, bottleneck, dilated }: ResNet): Value {
  return graph.within("backbone", () => {
    const seen = relu(graph, convolution(graph, "stem", pictures, { from: 3, to: stem, kernel: 7, stride: 2 }));
    let x = pooled(graph, seen);
    let from = stem;
    for (const [stage, { blocks, channels: inside }] of stages.entries()) {
      const to = bottleneck ? EXPANSION * inside : inside;
      const holes = dilated && stage === stages.length - 1;
      for (let block = 0; block < blocks; block += 1) {
        const first = block === 0;
        const size = {
          from,
          inside,
          to,
          stride: first && stage > 0 && !holes ? 2 : 1,
          dilation: holes && !first ? 2 : 1,
        };
        x = graph.within(`${stage + 1}.${block}`, () => residual(graph, x, size, bottleneck));
        from = to;
      }
    }
    return x;
  });
}

/**
 * The largest of 3 by 3 pixels, every second one: [P, C, h, w] → [P, C, h / 2 rounded up, w / 2 rounded up]. No value is negative.
 * ONNX Runtime has no pool of bfloat16: there it is the largest of three shifted pictures, in float32, along each edge.
 */
function pooled(graph: GraphBuilder, x: Value): Value {
  if (graph.build.compute !== "bf16")
    return graph.op("MaxPool", [x], { kernel_shape: [3, 3], strides: [2, 2], pads: [1, 1, 1, 1] });
  let value = graph.op("Pad", [graph.single(x), graph.ints([0, 0, 1, 1, 0, 0, 1, 1])]);
  for (const axis of [2, 3]) {
    const shifted = [-2, -1, Number.MAX_SAFE_INTEGER].map((end, start) =>
      graph.op("Slice", [value, graph.ints([start]), graph.ints([end]), graph.ints([axis]), graph.ints([2])]),
    );
    value = graph.op("Max", shifted);
  }
  return graph.inner(value);
}

interface Block {
  readonly from: number;
  readonly inside: number;
  readonly to: number;
  readonly stride: number;
  readonly dilation: number;
}

/** relu(convolutions(x) + x), where x is brought to the same shape by `shortcut` if it has another. */
function residual(graph: GraphBuilder, x: Value, size: Block, bottleneck: boolean): Value {
  const { from, inside, to, stride, dilation } = size;
  const layers = bottleneck
    ? [
        { from, to: inside, kernel: 1 },
        { from: inside, to: inside, kernel: 3, stride, dilation },
        { from: inside, to, kernel: 1 },
      ]
    : [
        { from, to: inside, kernel: 3, stride, dilation },
        { from: inside, to, kernel: 3, dilation },
      ];
  const sum = layers.reduce((value, layer, index) => {
    return convolution(graph, `conv${index + 1}`, index === 0 ? value : relu(graph, value), layer);
  }, x);
  const same = stride === 1 && from === to;
  const kept = same ? x : convolution(graph, "shortcut", x, { from, to, kernel: 1, stride });
  return relu(graph, graph.op("Add", [sum, kept]));
}

interface Convolution {
  readonly from: number;
  readonly to: number;
  /** Edge of the filter, odd. */
  readonly kernel: number;
  readonly stride?: number;
  readonly dilation?: number;
}

/** `<name>.weight` [to, from, kernel, kernel], `<name>.bias` [to]; zeros around the picture keep its size, divided by the stride. */
export function convolution(graph: GraphBuilder, name: string, x: Value, size: Convolution): Value {
  const { from, to, kernel, stride = 1, dilation = 1 } = size;
  return graph.within(name, () => {
    const weight = graph.weight("weight", [to, from, kernel, kernel], { fanIn: from * kernel * kernel });
    const bias = graph.weight("bias", [to], SLIGHT);
    const edge = (dilation * (kernel - 1)) / 2;
    return graph.op("Conv", [x, weight, bias], {
      kernel_shape: [kernel, kernel],
      strides: [stride, stride],
      dilations: [dilation, dilation],
      pads: [edge, edge, edge, edge],
    });
  });
}

function relu(graph: GraphBuilder, x: Value): Value {
  return graph.op("Relu", [x]);
}
