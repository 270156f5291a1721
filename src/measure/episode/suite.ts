/** `tendon bench episode`: does a robot's 30 Hz control loop always have a row to command? Each robot is a session on a socket. */
import type { Service } from "../../client/http.ts";
import { robotModel } from "../../client/robot-models.ts";
import { systemClock } from "../../std/clock.ts";
import { Problem } from "../../std/problem.ts";
import { SAMPLE_MODEL } from "../sample/observation.ts";
import { drawnScenes, type Scenes } from "../sample/scenes.ts";
import { type BenchTarget, measureEach } from "../target.ts";
import { type LoopPlan, runLoop } from "./control-loop.ts";
import { type Connection, type LoopFigures, PERIOD_MS } from "./loop-robot.ts";
import type { EpisodeMeasurement } from "./report.ts";
import { ROWS, withRobots } from "./robot-sockets.ts";

/** How long a chunk plays: robots that are not synchronized begin within this time. */
export const CHUNK_MS = ROWS * PERIOD_MS;
/** Connections, caches and the compilers of both sides warm up. */
const WARMUP_MS = 2_000;

/** All measurements of the plan, one after the other. */
export async function runEpisodeSuite(
  plan: BenchTarget & { readonly seconds: number },
): Promise<EpisodeMeasurement[] | Problem> {
  const scenes = await drawnScenes();
  if (scenes instanceof Problem) return scenes;
  const { seconds } = plan;
  return await measureEach(plan, `${seconds} s idle control, then ${seconds} s`, async (service, robots) => {
    const model = await robotModel(service, SAMPLE_MODEL);
    if (model instanceof Problem) return model;
    const load = { service, robots, seconds, scenes, spreadMs: CHUNK_MS, rowsAhead: "adaptive" } as const;
    const figures = await measureEpisodes(load);
    return figures instanceof Problem ? figures : { ...figures, seconds, reference: model.bundle === "reference" };
  });
}

interface EpisodeLoad extends Pick<LoopPlan, "spreadMs" | "rowsAhead"> {
  readonly service: Service;
  readonly robots: number;
  readonly seconds: number;
  readonly scenes: Scenes;
}

/** The loop without any traffic first, then the same loop with it. */
export async function measureEpisodes(
  load: EpisodeLoad,
): Promise<{ control: LoopFigures; service: LoopFigures } | Problem> {
  const control = await runLoop({ ...loopOf(load), connections: idleConnections(load.robots) });
  if (control instanceof Problem) return control;
  const service = await driveEpisodes(load);
  return service instanceof Problem ? service : { control, service };
}

/** The robots' loop against the service. */
export async function driveEpisodes(load: EpisodeLoad): Promise<LoopFigures | Problem> {
  const { service, robots, scenes } = load;
  return await withRobots(service, robots, scenes, (connections) => runLoop({ ...loopOf(load), connections }));
}

function loopOf({ seconds, spreadMs, rowsAhead }: EpisodeLoad) {
  return { clock: systemClock, spreadMs, rowsAhead, warmupMs: WARMUP_MS, measuredMs: seconds * 1000 };
}

/** Robots whose chunks come at once without a service: a row that is late then shows the machine's and the loop's own lateness. */
function idleConnections(robots: number): Connection[] {
  return Array.from({ length: robots }, () => ({ capture: () => {}, observe: () => Promise.resolve(ROWS) }));
}
