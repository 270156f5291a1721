/** The observation that `tendon sample` writes and measurements send: that of the example in the documents, or one made up for another model. */
import type { Service } from "../../client/http.ts";
import { type RobotModel, robotModel } from "../../client/robot-models.ts";
import { EXAMPLE, EXAMPLE_INSTRUCTION } from "../../robot/docs/example.ts";
import { restingState } from "../../robot/state.ts";
import { Problem } from "../../std/problem.ts";
import { VIEWS } from "./scene.ts";

export const SAMPLE_MODEL = EXAMPLE.model;
export const SAMPLE_INSTRUCTION = EXAMPLE_INSTRUCTION;
/** A resting pose: left joints 1-6, right joints 1-6 in radians; grippers half open. */
export const SAMPLE_STATE = EXAMPLE.robot_state;

/** What measured robots send to a model, apart from their pictures. */
export interface Sample {
  readonly model: string;
  readonly state: object;
  /** Names in the order of the wire. */
  readonly cameras: readonly string[];
  /** Frames per camera. */
  readonly frames: { readonly first: number; readonly later: number };
  /** The size of every frame, where the model takes no other. */
  readonly frameSize?: NonNullable<RobotModel["frame_size"]>;
}

/** Its cameras are the views of the drawn scene. */
export const SAMPLE: Sample = {
  ...{ model: SAMPLE_MODEL, state: SAMPLE_STATE, cameras: VIEWS },
  frames: { first: 1, later: 1 },
};

/** The sample for any model that the service has: a resting state, and as many frames as the model has cameras. */
export async function sampleOf(service: Service, id: string = SAMPLE_MODEL): Promise<Sample | Problem> {
  if (id === SAMPLE_MODEL) return SAMPLE;
  const found = await robotModel(service, id);
  if (found instanceof Problem) return found;
  const { state: kind, state_columns, action_columns, cameras, frames, frame_size: size } = found;
  const state = restingState(kind, { columns: state_columns }, { columns: action_columns });
  return { model: id, state, cameras, frames, ...(size && { frameSize: size }) };
}
