/** One `[robot."ID"]` table: how a robot model is served, and its prices. */
import { type StaticDecode, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { flag, rate, whole } from "./fields.ts";
import { GPU_KEYS, gpuOf } from "./gpu.ts";

const DeviceName = Type.String({ pattern: "^(auto|cpu|echo|(cuda|tensorrt|webgpu):\\d{1,2})$" });

export const RobotTable = Type.Object(
  {
    replicas: whole(1, 64, 1),
    /** Sessions that a replica holds; absent: as many as its memory can. */
    slots: Type.Optional(whole(1, 65_536)),
    /** Host memory for parked sessions beyond `slots`; 0: none; absent: as many as `slots`, in an eighth of what is available. */
    parked_mib_max: Type.Optional(whole(0, 1_048_576)),
    /** One device for all replicas, or a list: `placeReplicas`. */
    device: Type.Union([DeviceName, Type.Array(DeviceName, { minItems: 1 })], {
      expected: "auto, cpu, echo, cuda:N, tensorrt:N, webgpu:N or a list",
      default: "auto",
    }),
    /** Threads of one inference; absent: as many as the machine has for it. */
    threads: Type.Optional(whole(1, 256)),
    ...GPU_KEYS,
    /** Serve random weights, or the device `echo`, outside `--dev`. */
    allow_reference: flag(false),
    prompt_usd_per_mtok: Type.Optional(rate()),
    cached_prompt_usd_per_mtok: Type.Optional(rate()),
    row_usd_per_mrow: Type.Optional(rate()),
  },
  { additionalProperties: false, default: {} },
);

const RATE_KEYS = ["prompt_usd_per_mtok", "cached_prompt_usd_per_mtok", "row_usd_per_mrow"] as const;

export type RobotConfig = ReturnType<typeof robotConfig>;

/** Nano-dollars per token and per row. */
type Rates = Readonly<Record<"prompt" | "cachedPrompt" | "completion", bigint>>;

/** The ids of the specification; an operator may serve others. */
export const SPECIFIED_IDS: readonly string[] = [
  "vendorA/dreamzero-astra:yam",
  "vendorB/molmoact2:yam",
  "vendorC/rho:yam",
  "vendorD/isaac-0.5:yam",
  "vendorE/pi0.5:yam",
  "vendorF/picasso:yam",
];

/** The rates of the built-in configuration, per model: 0.50, 0.05 and 40.00 USD per million. No other id has a price by itself. */
export const BUILT_IN_RATES: Rates = { prompt: 500n, cachedPrompt: 50n, completion: 40_000n };

/** Tables as they stand in the file, and before them those of the models with built-in rates, which are written out. */
export function robotTables(given: Readonly<Record<string, object>>): Map<string, object> {
  const written = (nanos: bigint) => Value.Encode(rate(), nanos);
  const builtIn = SPECIFIED_IDS.map((id): [string, object] => [
    id,
    {
      ...Object(Value.Default(RobotTable, {})),
      prompt_usd_per_mtok: written(BUILT_IN_RATES.prompt),
      cached_prompt_usd_per_mtok: written(BUILT_IN_RATES.cachedPrompt),
      row_usd_per_mrow: written(BUILT_IN_RATES.completion),
      ...given[id],
    },
  ]);
  return new Map([...builtIn, ...Object.entries(given).filter(([id]) => !SPECIFIED_IDS.includes(id))]);
}

/** What a model costs; the text says why that is not known, or cannot be. */
export function robotRates(id: string, { rates }: Pick<RobotConfig, "rates">): Rates | string {
  const builtIn = SPECIFIED_IDS.includes(id) ? BUILT_IN_RATES : undefined;
  const { prompt = builtIn?.prompt, cachedPrompt = builtIn?.cachedPrompt, completion = builtIn?.completion } = rates;
  if (prompt === undefined || cachedPrompt === undefined || completion === undefined) {
    const lines = RATE_KEYS.map((key) => `${key} = ""`);
    return `its price is not known; write into tendon.toml, in USD per million:\n[robot."${id}"]\n${lines.join("\n")}`;
  }
  // What is held before an inference is its prompt at the uncached rate, so that a chunk never costs more than was held.
  if (cachedPrompt <= prompt) return { prompt, cachedPrompt, completion };
  return "cached_prompt_usd_per_mtok is above prompt_usd_per_mtok; a cached token must not cost more";
}

export function robotConfig(table: StaticDecode<typeof RobotTable>) {
  return Object.freeze({
    replicas: table.replicas,
    slots: table.slots,
    parkedMibMax: table.parked_mib_max,
    device: table.device,
    threads: table.threads,
    /** Keys of the table `[gpu]` that differ for this model. */
    gpu: Object.freeze(gpuOf(table)),
    allowReference: table.allow_reference,
    /** The place of each in the file. */
    rates: Object.freeze({
      prompt: table.prompt_usd_per_mtok,
      cachedPrompt: table.cached_prompt_usd_per_mtok,
      completion: table.row_usd_per_mrow,
    }),
  });
}

/** What a table without any key means. */
export const ROBOT_DEFAULT: RobotConfig = robotConfig(Value.Decode(RobotTable, Value.Default(RobotTable, {})));
