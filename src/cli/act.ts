/** `tendon act`: one observation to a running service, one chunk back, printed and, if asked for, drawn. */
import { type ActionChunk, CHAT_ROUTE, chunkOf } from "../client/chunk.ts";
import { post, type Service } from "../client/http.ts";
import { requestBody } from "../client/request.ts";
import { type RobotModel, robotModel } from "../client/robot-models.ts";
import { signedIn } from "../client/sign-in.ts";
import { STATIONS } from "../engine/engine.ts";
import { type Column, chunkTable } from "../measure/plot/columns.ts";
import { plotSvg } from "../measure/plot/svg.ts";
import { systemClock } from "../std/clock.ts";
import { printable } from "../std/printable.ts";
import { EXIT, Problem } from "../std/problem.ts";
import { cameraFiles, inModelOrder, type Observation, readFrames, readState } from "./act/cameras.ts";
import { claimFolder, writeRun } from "./act/record.ts";
import { BASE_URL_FLAG, type Command, type CommandLine, usageProblem } from "./frame/command.ts";
import { answer, printNote } from "./frame/print.ts";

const REFERENCE_NOTE =
  "Reference bundle: random weights, or no model at all. Its rows mean nothing: never move a real arm with them.";

export const act: Command = {
  name: "act",
  summary: "Send one observation to a running service and print the chunk of motion that comes back.",
  flags: {
    model: { value: "ID", about: "Robot model, for example vendorB/molmoact2:yam.", required: true },
    instruction: { value: "TEXT", about: "The task of the robot.", required: true },
    image: { value: "CAMERA=FILE", multiple: true, about: "JPEG of one camera, once per frame, oldest first." },
    state: { value: "FILE", about: "JSON file with robot_state.", required: true },
    session: { value: "ID", about: "Continue or begin this session." },
    "base-url": BASE_URL_FLAG,
    plot: { value: "FILE.svg", about: "Also draw the traces over time." },
    record: { value: "DIR", about: "Also write the observation and its chunk as a run, to a new or empty folder." },
    json: { about: "Print the action chunk as one JSON object." },
  },
  async run(given) {
    const wanted = wantedOf(given);
    if (wanted instanceof Problem) return wanted;
    const state = await readState(wanted.stateFile);
    if (state instanceof Problem) return state;
    const service = await signedIn(given.text("base-url"));
    if (service instanceof Problem) return service;
    // The service alone knows the order of its cameras: a bundle that happens to be installed here may have another one.
    const model = await robotModel(service, wanted.model);
    if (model instanceof Problem) return model;
    const cameras = inModelOrder(wanted.cameras, wanted.model, model.cameras);
    if (cameras instanceof Problem) return cameras;
    const frames = await readFrames(cameras);
    if (frames instanceof Problem) return frames;
    const folder = given.text("record");
    const refused = folder === undefined ? undefined : await claimFolder(folder, cameras);
    if (refused !== undefined) return refused;
    const observation = { ...wanted, state, cameras: frames };
    const [sentMs, beforeMs] = [systemClock.unixMs(), systemClock.monotonicMs()];
    const chunk = await answered(service, observation);
    const latencyMs = systemClock.monotonicMs() - beforeMs;
    if (chunk instanceof Problem) return chunk;
    const columns = model.action_columns.map(shownColumn);
    const isReference = model.bundle === "reference";
    // The chunk is paid for, so it is printed even if it cannot be drawn or recorded.
    await answer(given, chunk, `${headline(wanted.model, chunk)}\n\n${chunkTable(chunk, columns)}`);
    if (isReference) await printNote(REFERENCE_NOTE);
    const named = { cameras: cameras.map(({ camera }) => camera), columns: columns.map(({ name }) => name) };
    const recorded = { observation, ...named, chunk, model, sentMs, latencyMs };
    const lost = folder === undefined ? undefined : await writeRun(folder, recorded);
    return lost ?? (await draw(given.text("plot"), wanted, chunk, columns, isReference)) ?? EXIT.done;
  },
};

type ActRequest = Exclude<ReturnType<typeof wantedOf>, Problem>;

function wantedOf(given: CommandLine) {
  const cameras = cameraFiles(given.list("image"));
  if ("wrong" in cameras) return usageProblem(act, `--image is '${cameras.wrong}', expected CAMERA=FILE`);
  if (cameras.length === 0) return usageProblem(act, "--image is missing, one per camera frame");
  return {
    model: given.required("model"),
    instruction: given.required("instruction"),
    cameras,
    stateFile: given.required("state"),
    sessionId: given.text("session"),
  };
}

async function answered(service: Service, observation: Observation): Promise<ActionChunk | Problem> {
  const body = requestBody({ ...observation, frames: observation.cameras.flat() });
  const answer = await post(service, CHAT_ROUTE, JSON.stringify(body));
  if (answer instanceof Problem) return answer;
  const { url } = service;
  return (
    chunkOf(answer.body) ??
    new Problem(`the service at ${url} answered without an action chunk; is '${observation.model}' a robot model?`)
  );
}

/** A bundle writes `1` for "no unit"; for a fraction its range is shown instead. */
function shownColumn({ name, unit, min, max }: RobotModel["action_columns"][number]): Column {
  const fraction = min === 0 && max === 1 ? "0-1" : "";
  return { name: printable(name), unit: unit === "1" ? fraction : printable(unit) };
}

function headline(model: string, chunk: ActionChunk): string {
  const timing = STATIONS.map((station) => `${station} ${chunk.timing_ms[station].toFixed(2)}`).join(", ");
  return [
    `${model}, session ${printable(chunk.session_id)}, step ${chunk.step}`,
    `${chunk.actions.length} rows of ${chunk.action_dim} (${printable(chunk.action_space)}), one every ${(chunk.dt * 1000).toFixed(1)} ms`,
    `timing in ms: ${timing}`,
    ...(chunk.clamped === undefined ? [] : [`values outside the range of their column, clamped: ${chunk.clamped}`]),
  ].join("\n");
}

async function draw(
  path: string | undefined,
  wanted: ActRequest,
  chunk: ActionChunk,
  columns: readonly Column[],
  reference: boolean,
): Promise<Problem | undefined> {
  if (path === undefined) return undefined;
  const facts = [wanted.instruction, `${chunk.actions.length} rows, ${(chunk.dt * 1000).toFixed(1)} ms apart`];
  if (reference) facts.push("reference: random weights, or no model");
  const svg = plotSvg({
    title: `${wanted.model}, step ${chunk.step}`,
    subtitle: facts.join(" · "),
    dt: chunk.dt,
    rows: chunk.actions,
    columns,
  });
  try {
    await Bun.write(path, svg);
    return undefined;
  } catch (error) {
    return new Problem(`cannot write the plot to '${path}': ${(error as Error).message}`);
  }
}
