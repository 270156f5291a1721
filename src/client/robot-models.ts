/** The robot models of a service with their facts, as `GET /v1/robot/models` lists them. */
import { type Static, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { printable } from "../std/printable.ts";
import { Problem } from "../std/problem.ts";
import { get, type Service } from "./http.ts";

const MODELS_ROUTE = "/v1/robot/models";

const COLUMN = { name: Type.String(), unit: Type.String() };

const RobotModel = Type.Object({
  id: Type.String(),
  /** Names in the order of the wire. */
  cameras: Type.Array(Type.String(), { minItems: 1 }),
  /** Frames per camera. */
  frames: Type.Object({ first: Type.Number(), later: Type.Number() }),
  /** Pixels that a frame must have exactly; absent or null: any. */
  frame_size: Type.Optional(Type.Union([Type.Object({ width: Type.Number(), height: Type.Number() }), Type.Null()])),
  /** The kind of its `robot_state`. */
  state: Type.Union([Type.Literal("joint"), Type.Literal("cartesian"), Type.Literal("vector")]),
  /** The values that the model reads: an array of `robot_state` and an index in it. */
  state_columns: Type.Array(Type.Object({ ...COLUMN, from: Type.String(), index: Type.Number() })),
  action_columns: Type.Array(Type.Object({ ...COLUMN, min: Type.Number(), max: Type.Number() })),
  /** `reference`: random weights, or no model; its rows must never move a real arm. */
  bundle: Type.Union([Type.Literal("trained"), Type.Literal("reference")]),
});
export type RobotModel = Static<typeof RobotModel>;

const RobotModels = Type.Object({ data: Type.Array(RobotModel) });

/** The facts of one model; a problem names those that the service has instead. */
export async function robotModel(service: Service, id: string): Promise<RobotModel | Problem> {
  const answer = await get(service, MODELS_ROUTE);
  if (answer instanceof Problem) return answer;
  if (!Value.Check(RobotModels, answer.body)) {
    return new Problem(
      `the service at ${service.url} answered without a list of robot models; is it a tendon service of this version?`,
    );
  }
  const models = answer.body.data;
  const found = models.find((model) => model.id === id);
  if (found !== undefined) return found;
  const served = models.map((model) => printable(model.id)).join(", ") || "none";
  return new Problem(`the service at ${service.url} has no robot model '${id}'; it has: ${served}`);
}
