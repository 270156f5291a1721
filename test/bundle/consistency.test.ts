/** Manifests that contradict themselves are refused with path, found and expected. */
import { expect, test } from "bun:test";
import { present } from "../../src/std/assert.ts";
import { edited } from "./damaged.ts";
import type { FlowManifest } from "./flow-bundle.ts";

/** Those that openpi counts for ten steps, but the end. */
const times = [...Array.from({ length: 10 }, (_, step) => Math.fround(1 - step / 10)), 0];
const timesWith = (index: number, time: number | undefined) =>
  times.map((one, at) => (at === index ? (time ?? 0) : one));

test("shapes and names that contradict the facts", async () => {
  const cases: [(m: FlowManifest) => unknown, string][] = [
    [(m) => (m.action.rows = 29), "/graphs/denoise/inputs/0/shape: found"],
    [(m) => (m.action.rows = 129), "/action/rows: found 129, expected"],
    [(m) => m.cameras.push("back"), "/graphs/prefill/inputs/0/shape: found"],
    [(m) => (m.cameras[1] = "top"), "/cameras/1: found top"],
    [(m) => (present(m.graphs.prefill.outputs[0], "the mask").shape[1] = 288), "/graphs/prefill/outputs/0/shape"],
    [(m) => (m.prompt.tokens_max = 16), "/prompt/tokens_max: found 16, expected more than the 16"],
    [(m) => delete m.prompt.buckets, "/graphs/prefill/inputs/1/shape"],
    [(m) => (m.prompt.buckets = [32, 32, 64]), "/prompt/buckets/0: found 32, expected less than 32"],
    [(m) => (m.prompt.buckets = [96]), "/prompt/buckets/0: found 96, expected less than tokens_max, 96"],
    [(m) => (m.frames.later = 4), "/frames/first: found 1, expected 4"],
    [
      (m) => Object.assign(m.image, { resize: "stretch", place: "bottom_right" }),
      "/image/place: found bottom_right, expected nothing, with stretch",
    ],
    [
      (m) => Object.assign(m.image, { resize: "pad", place: "left" }),
      '/image/place: found "left", expected one of "centre", "bottom_right"',
    ],
    [(m) => (m.image.resize = "exact"), "/image/filter: found pillow-bilinear, expected nothing, with exact"],
    [(m) => delete m.image.filter, "/image/filter: found nothing, expected a filter, with "],
    [
      (m) => Object.assign(present(m.state.columns[2], "column"), { norm: "none", epsilon: 0 }),
      "/state/columns/2/epsilon: found 0, expected nothing, with norm none",
    ],
    [
      (m) => (present(m.action.columns[3], "column").clip = { min: 1, max: -1 }),
      "/action/columns/3/clip/max: found -1, expected more than min, 1",
    ],
    [(m) => (m.action.width = 13), "/action/columns: found 14 columns, expected 13 at most"],
    [
      (m) => (present(m.action.columns[0], "column").name = "nowhere"),
      "/action/columns/0/max_jump: found no state column, expected a state column of the same name, or relative_to, in rad",
    ],
    [(m) => (present(m.state.columns[0], "column").unit = "deg"), "/action/columns/0/max_jump: found deg"],
    ...(["max_jump", "max_step"] as const).flatMap((limit) =>
      [0, -1, Number.POSITIVE_INFINITY, "2"].map((value): [(m: FlowManifest) => unknown, string] => [
        (m) => Object.assign(present(m.action.columns[0], "column"), { [limit]: value }),
        `/action/columns/0/${limit}: found`,
      ]),
    ),
    [(m) => ((m.action.columns[0] as { relative_to: number }).relative_to = 14), "/action/columns/0/relative_to"],
    [(m) => ((m.graphs.denoise.inputs[3] as { from: string }).from = "past_q_0"), "/graphs/denoise/inputs/3/from"],
    [(m) => m.graphs.prefill.outputs.pop(), "/graphs/denoise/inputs/10/from"],
    [(m) => (m.tokenizer = "other.json"), "/tokenizer: found other.json"],
    [(m) => (m.export_id = "0".repeat(64)), "/export_id: found 0000"],
    [(m) => m.state.columns.push({ ...present(m.state.columns[0], "column"), name: "again" }), "/state/columns/14"],
    [(m) => (m.stateful = true), "/stateful: found true, expected false"],
    [
      (m) => {
        m.stateful = true;
        m.memory = { window: 4, tokens: 192, first: 1, later: 1 };
      },
      "/graphs/extend: found nothing, expected a graph",
    ],
    [(m) => (m.graphs.extend = m.graphs.prefill), "/graphs/extend: found a graph, expected nothing"],
    [(m) => (m.guidance = { scale: 2, apply: [] }), "/guidance: found"],
    [(m) => (m.state.width = 13), "/state/columns: found 14 columns, expected 13 at most"],
    ...(
      [
        [[1, 0.5, 0], "/flow/times: found 3 times, expected 11, one more than steps"],
        [timesWith(0, 0.9375), "/flow/times/0: found 0.9375, expected t_start, 1"],
        [timesWith(3, 0.6), "/flow/times/3: found 0.6, expected a float32 value"],
        [timesWith(3, 0.9375), "/flow/times/3: found 0.9375, expected a time nearer to t_end, 0, than the one before"],
        [timesWith(4, times[3]), "/flow/times/4: found"],
        [timesWith(10, 0.0625), "/flow/times/10: found 0.0625, expected t_end, 0, but for rounding"],
      ] as const
    ).map(([list, expected]): [(m: FlowManifest) => unknown, string] => [(m) => (m.flow.times = [...list]), expected]),
    [(m) => Object.assign(m.flow, { times, shift: 2 }), "/flow/shift: found 2, expected 1, where the times are listed"],
    ...(
      [
        [{ text: "{instruction}", bins: 256 }, "/prompt/parts/0/bins: found 256, expected nothing, without {state}"],
        [{ text: "{instruction} {state}" }, "/prompt/parts/0/bins: found nothing, expected bins"],
        [{ text: "{instruction}{state}", bins: 256 }, "/prompt/parts/0/text: found"],
        [
          { text: "{instruction}", clean: ["lower"] },
          '/prompt/parts/0/clean/0: found "lower", expected one of "strip"',
        ],
      ] as const
    ).map(([part, expected]): [(m: FlowManifest) => unknown, string] => [
      (m) => (m.prompt.parts = [{ kind: "template", ...part } as unknown as FlowManifest["prompt"]["parts"][number]]),
      expected,
    ]),
    [(m) => (m.action.rotation6d = [9]), "/action/rotation6d/0: found 9, expected six free columns"],
    [(m) => (m.action.rotation6d = [0, 5]), "/action/rotation6d/1: found 5, expected six free columns"],
  ];
  for (const [edit, expected] of cases) {
    expect(
      await edited((m) => {
        edit(m);
      }),
    ).toContain(expected);
  }
});
