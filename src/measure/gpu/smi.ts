/** What NVIDIA's own tool says of cards: their names, memory and power. A machine without it has none of the three, which is said. */
import { childEnvironment } from "../../config/environment.ts";
import { firstLine } from "../child.ts";
import { median } from "../stats.ts";

export const TOOL = "nvidia-smi";
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

export interface ListedCard {
  /** By the place on the bus. */
  readonly index: string;
  readonly uuid: string;
  readonly name: string;
}

/** All of the machine; none without the tool. `tool` is another program in tests. */
export async function listedCards(tool = TOOL): Promise<ListedCard[]> {
  const child = spawned([tool, "--query-gpu=index,uuid,name", "--format=csv,noheader"]);
  if (child === undefined) return [];
  const text = await child.stdout.text();
  if ((await child.exited) !== 0) return [];
  return text.split("\n").flatMap((line) => {
    const [index = "", uuid = "", name] = line.split(",").map((cell) => cell.trim());
    return name === undefined ? [] : [{ index, uuid, name }];
  });
}

/** undefined without the tool or the card. `id` as the tool takes it: an index or a UUID. */
export async function cardState(id: string, tool = TOOL): Promise<CardState | undefined> {
  const fields = "name,driver_version,memory.total,memory.free,power.limit,clocks.max.sm";
  const words = [tool, `--id=${id}`, `--query-gpu=${fields}`, "--format=csv,noheader,nounits"];
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
export function sampling(id: string, tool = TOOL): { stop(): Promise<Drawn> } | undefined {
  const fields = "power.draw,memory.used";
  const loop = [`--query-gpu=${fields}`, "--format=csv,noheader,nounits", `--loop-ms=${EVERY_MS}`];
  const child = spawned([tool, `--id=${id}`, ...loop]);
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
