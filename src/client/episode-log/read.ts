/** Reading the log of a run, line by line and strictly: the first line that is wrong ends it, with its number and what is wrong. */
import { join } from "node:path";
import type { Static, TSchema } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { parseJson } from "../../std/json.ts";
import { printable } from "../../std/printable.ts";
import { Problem } from "../../std/problem.ts";
import { pathProblem } from "../../std/run-names.ts";
import { EPISODE_FILE, EpisodeHead, EpisodeObservation } from "./format.ts";

/** A line of a model with thousands of rows is far below it; whatever is longer is no line of a log, and is not kept in memory. */
const LINE_CHARACTERS_MAX = 16 * 1024 * 1024;

export interface EpisodeLog {
  readonly head: EpisodeHead;
  /** The observations in their order; a problem is the last that comes. */
  readonly observations: AsyncGenerator<EpisodeObservation | Problem, void>;
}

/** Opens the log in the folder of a run. A caller that does not read it to its end calls `observations.return()`. */
export async function openEpisode(folder: string): Promise<EpisodeLog | Problem> {
  const path = join(folder, EPISODE_FILE);
  const lines = linesOf(path);
  const first = await lines.next();
  if (first.done === true) return new Problem(`'${path}' is empty; its first line must be the head of the episode`);
  if (first.value instanceof Problem) return first.value;
  const head = parsed(EpisodeHead, first.value);
  const wrong = typeof head === "string" ? head : headFault(head);
  if (typeof head !== "string" && wrong === undefined) return { head, observations: observationsOf(path, head, lines) };
  await lines.return();
  return lineProblem(path, 1, wrong ?? "");
}

async function* observationsOf(
  path: string,
  head: EpisodeHead,
  lines: ReturnType<typeof linesOf>,
): AsyncGenerator<EpisodeObservation | Problem, void> {
  let [number, before] = [1, 0];
  for await (const line of lines) {
    number += 1;
    if (line instanceof Problem) {
      yield line;
      return;
    }
    const observation = parsed(EpisodeObservation, line);
    const wrong = typeof observation === "string" ? observation : fault(head, observation, before);
    if (typeof observation === "string" || wrong !== undefined) {
      yield lineProblem(path, number, wrong ?? "");
      return;
    }
    before = observation.t;
    yield observation;
  }
}

/** The lines of the file without their ends. A last one without an end is cut off, and said to be. */
async function* linesOf(path: string): AsyncGenerator<string | Problem, void> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let [rest, count] = ["", 0];
  try {
    for await (const bytes of Bun.file(path).stream()) {
      const lines = (rest + decoder.decode(bytes, { stream: true })).split("\n");
      rest = lines.pop() ?? "";
      count += lines.length;
      yield* lines;
      if (rest.length > LINE_CHARACTERS_MAX) {
        yield lineProblem(path, count + 1, `it is longer than ${LINE_CHARACTERS_MAX} characters`);
        return;
      }
    }
    rest += decoder.decode();
  } catch (error) {
    yield new Problem(
      `cannot read '${path}': ${(error as Error).message}; a recorded run has its log there, as lines of UTF-8`,
    );
    return;
  }
  if (rest !== "")
    yield lineProblem(path, count + 1, "it is cut off: no line break ends it; remove it to read the rest");
}

/** The line as the schema has it, or what is wrong with it. */
function parsed<T extends TSchema>(schema: T, line: string): Static<T> | string {
  const value = parseJson(line);
  if (typeof value !== "object" || value === null) return "it is not a JSON object";
  if (Value.Check(schema, value)) return value;
  const first = Value.Errors(schema, value).First();
  return `${first?.path || "it"}: ${first?.message ?? "is of another form"}`;
}

function headFault({ cameras }: EpisodeHead): string | undefined {
  const twice = cameras.find(({ name }, index) => cameras.findIndex((other) => other.name === name) !== index);
  if (twice !== undefined) return `/cameras: '${twice.name}' stands there twice`;
  const strange = cameras.find(({ video }) => video !== undefined && pathProblem(video.split("/")) !== undefined);
  return strange && `/cameras: '${strange.video}' is not a path inside the run`;
}

/** What the head and the line before ask of an observation. */
function fault(head: EpisodeHead, observation: EpisodeObservation, before: number): string | undefined {
  const { t, state, frames = {}, chunk } = observation;
  const [states, actions] = [head.state.names.length, head.action.names.length];
  if (t < before) return `/t: ${t} is before ${before}, the time of the line above`;
  if (state.length !== states) return `/state: ${state.length} values, the head names ${states}`;
  const row = chunk?.actions.findIndex((values) => values.length !== actions) ?? -1;
  if (row >= 0) return `/chunk/actions/${row}: ${chunk?.actions[row]?.length} values, the head names ${actions}`;
  for (const { name, video } of head.cameras) {
    const paths = frames[name];
    if (video === undefined && paths === undefined) return `/frames: none of camera '${name}', which has no video`;
    const strange = paths?.find((one) => pathProblem(one.split("/")) !== undefined);
    if (strange !== undefined) return `/frames/${name}: '${strange}' is not a path inside the run`;
  }
  return undefined;
}

function lineProblem(path: string, line: number, what: string): Problem {
  return new Problem(`'${path}' line ${line}: ${printable(what)}`);
}
