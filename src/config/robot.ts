/** One `[robot."ID"]` table: how a robot model is served, and its prices. */
import { type StaticDecode, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { flag, rate, whole } from "./fields.ts";

const DeviceName = Type.String({ pattern: "^(auto|cpu|echo|(cuda|tensorrt|webgpu):\\d{1,2})$" });

export const RobotTable = Type.Object(
  {
    replicas: whole(1, 64, 1),
    /** Sessions that a replica holds; absent: as many as its memory can. */
    slots: Type.Optional(whole(1, 65_536)),
    /** One device, or one per replica. */
    device: Type.Union([DeviceName, Type.Array(DeviceName, { minItems: 1 })], {
      expected: "auto, cpu, echo, cuda:N, tensorrt:N, webgpu:N or a list",
      default: "auto",
    }),
    /** Threads inside one run. */
    threads: whole(1, 256, 1),
    /** Serve random weights outside `--dev`. */
    allow_reference: flag(false),
    prompt_usd_per_mtok: rate("0.50"),
    cached_prompt_usd_per_mtok: rate("0.05"),
    row_usd_per_mrow: rate("40.00"),
  },
  { additionalProperties: false, default: {} },
);

export type RobotConfig = ReturnType<typeof robotConfig>;

/** Rates are nano-dollars per token and per row. */
export function robotConfig(table: StaticDecode<typeof RobotTable>) {
  return Object.freeze({
    replicas: table.replicas,
    slots: table.slots,
    device: table.device,
    threads: table.threads,
    allowReference: table.allow_reference,
    promptNanosPerToken: table.prompt_usd_per_mtok,
    cachedPromptNanosPerToken: table.cached_prompt_usd_per_mtok,
    rowNanosPerRow: table.row_usd_per_mrow,
  });
}

/** What a table without any key means. */
export const ROBOT_DEFAULT: RobotConfig = robotConfig(Value.Decode(RobotTable, Value.Default(RobotTable, {})));

/** What is held before a run is its prompt at the uncached rate, so that a run never costs more than was held. */
export function rateFault({ promptNanosPerToken, cachedPromptNanosPerToken }: RobotConfig): string | undefined {
  if (cachedPromptNanosPerToken <= promptNanosPerToken) return undefined;
  return "cached_prompt_usd_per_mtok is above prompt_usd_per_mtok; a cached token must not cost more";
}
