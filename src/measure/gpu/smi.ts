/** What NVIDIA's own tool says of a card: its name, memory and power. A machine without it has none of the three, which is said. */
import { childEnvironment } from "../../config/environment.ts";
import { firstLine } from "../child.ts";
import { median } from "../stats.ts";

const TOOL = "nvidia-smi";
const EVERY_MS = 100;

export interface CardState {
  readonly name: string;
  readonly driver: string;
  readonly memoryBytes: number;
  readonly memoryFreeBytes: number;
  /** The limit that is set. */
  readonly watts: number;
  /** Of the cores, the highest. */
  readonly mhzMax: number;
}

/** The number of an NVIDIA device's name; undefined for another device. On a host with several cards it is the tool's only with CUDA_DEVICE_ORDER=PCI_BUS_ID and all of them visible. */
export function cardNumber(device: string): number | undefined {
  const number = /^(?:cuda|tensorrt):(\d+)$/.exec(device)?.[1];
  return number === undefined ? undefined : Number(number);
}

/** undefined without the tool or the card. `tool` is another program in tests. */
export async function cardState(number: number, tool = TOOL): Promise<CardState | undefined> {
  const fields = "name,driver_version,memory.total,memory.free,power.limit,clocks.max.sm";
  const words = [tool, `--id=${number}`, `--query-gpu=${fields}`, "--format=csv,noheader,nounits"];
  const line = await lineOf(words);
  const [name, driver, total, free, watts, mhz] = line?.split(",").map((cell) => cell.trim()) ?? [];
  if (name === undefined || driver === undefined || mhz === undefined) return undefined;
  const mib = (cell = "") => Number(cell) * 2 ** 20;
  return {
    ...{ name, driver, memoryBytes: mib(total), memoryFreeBytes: mib(free) },
    ...{ watts: Number(watts), mhzMax: Number(mhz) },
  };
}

async function lineOf(words: string[]): Promise<string | undefined> {
  const child = spawned(words);
  if (child === undefined) return undefined;
  const line = await firstLine(child.stdout);
  return (await child.exited) === 0 ? line : undefined;
}

function spawned(words: string[]) {
  try {
    return Bun.spawn(words, { env: childEnvironment({}), stdin: "ignore", stdout: "pipe", stderr: "ignore" });
  } catch {
    return undefined;
  }
}

/** Of the card while some work ran. */
export interface Drawn {
  /** The median of the samples; NaN without a sample. */
  readonly watts: number;
  readonly memoryBytes: number;
}

/** Samples power and memory until `stop`; undefined where there is no tool. */
export function sampling(number: number, tool = TOOL): { stop(): Promise<Drawn> } | undefined {
  const fields = "power.draw,memory.used";
  const loop = [`--query-gpu=${fields}`, "--format=csv,noheader,nounits", `--loop-ms=${EVERY_MS}`];
  const child = spawned([tool, `--id=${number}`, ...loop]);
  if (child === undefined) return undefined;
  const text = child.stdout.text();
  return {
    async stop() {
      child.kill("SIGTERM");
      const lines = (await text).split("\n").filter((line) => line.includes(","));
      const rows = lines.map((line) => line.split(",").map(Number));
      const column = (at: number) => rows.map((row) => row[at] ?? Number.NaN).filter(Number.isFinite);
      const used = column(1);
      return { watts: median(column(0)), memoryBytes: used.length > 0 ? Math.max(...used) * 2 ** 20 : Number.NaN };
    },
  };
}
