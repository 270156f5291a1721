/**
 * A measured service and its clients on separate cores, where the machine has enough of them: else each waits for the other, and the
 * clients' own work is in the figures.
 */
import { readFileSync } from "node:fs";

export interface Placement {
  /** Lists of cores, as taskset reads them. */
  readonly service: string;
  readonly clients: string;
}

/** With fewer cores a service would be measured on less than robots get. */
const CORES_MIN = 4;

/** Clients have every fourth core, the last ones; undefined where there are too few. */
export function placementOn(cores: readonly number[]): Placement | undefined {
  if (cores.length < CORES_MIN) return undefined;
  const first = cores.length - Math.floor(cores.length / 4);
  return { service: cores.slice(0, first).join(","), clients: cores.slice(first).join(",") };
}

/** Cores of a list as Linux has it, such as `0-2,5`. */
export function coresOf(list: string): number[] {
  return list.split(",").flatMap((range) => {
    const [from = Number.NaN, to = from] = range.split("-").map((core) => Number.parseInt(core, 10));
    return Array.from({ length: Math.max(0, to - from + 1) }, (_, index) => from + index);
  });
}

let placed: Placement | undefined;
let isTried = false;

/** Moves this process to the cores of clients, the first time. Undefined where both share all cores. */
export function placement(): Placement | undefined {
  if (!isTried) placed = place();
  isTried = true;
  return placed;
}

function place(): Placement | undefined {
  const wanted = placementOn(coresOf(allowedCores()));
  if (wanted === undefined || Bun.which("taskset") === null) return undefined;
  // All threads that there are; later ones inherit it.
  const moved = Bun.spawnSync(["taskset", "--all-tasks", "--cpu-list", "--pid", wanted.clients, String(process.pid)]);
  return moved.success ? wanted : undefined;
}

/** Empty where the system has no such list: not Linux. */
function allowedCores(): string {
  try {
    return /^Cpus_allowed_list:\s*(\S+)/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1] ?? "";
  } catch {
    return "";
  }
}

/** The command that runs another one on a list of cores. */
export function pinned(cores: string, command: readonly string[]): string[] {
  return ["taskset", "--cpu-list", cores, ...command];
}

/** Cores of both together; undefined where they share what this process may use. */
export function placedCores(): number | undefined {
  return placed && coresOf(`${placed.service},${placed.clients}`).length;
}

/** What was done, for the head of a report. */
export function placementText(): string {
  if (placed === undefined) return "the service and its clients share all cores";
  return `the service has the cores ${placed.service}, its clients ${placed.clients}`;
}
