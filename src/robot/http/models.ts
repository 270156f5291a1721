/** `GET /v1/robot/models`: what `tendon models` prints of robot models, for programs (contract section 9). */
import { Type } from "@sinclair/typebox";
import { headers, json, type Operation } from "../../http/operation.ts";
import type { Catalog, Served } from "../catalog.ts";

export function robotModelList({ models }: Catalog): string {
  return JSON.stringify({ object: "list", data: [...models.values()].map(facts) });
}

function facts({ manifest, model, warning }: Served): object {
  const { id, title, cameras, frames, state, action, stateful } = manifest;
  return {
    ...{ id, object: "robot.model", title, cameras },
    frames: { first: frames.first, later: frames.later },
    ...{ state: state.kind, rows: action.rows, dt: 1 / action.hz },
    ...{ action_dim: action.columns.length, action_space: action.space, stateful },
    bundle: warning === undefined ? "trained" : "reference",
    ready: model !== undefined,
  };
}

const RobotModel = Type.Object(
  {
    id: Type.String({ description: "What a request names as `model`." }),
    object: Type.Literal("robot.model"),
    title: Type.String({ description: "For people." }),
    cameras: Type.Array(Type.String(), { description: "Names, in the order in which their frames are sent." }),
    frames: Type.Object(
      { first: Type.Integer({ minimum: 1 }), later: Type.Integer({ minimum: 1 }) },
      { description: "Frames per camera: of a session's first request, and of later ones." },
    ),
    state: Type.String({ enum: ["joint", "cartesian"], description: "The shape of `robot_state`." }),
    rows: Type.Integer({ minimum: 1, description: "Rows of a whole chunk." }),
    dt: Type.Number({ exclusiveMinimum: 0, description: "Seconds between two rows." }),
    action_dim: Type.Integer({ minimum: 1, description: "Values per row." }),
    action_space: Type.String({ enum: ["joint_position", "cartesian_position"] }),
    stateful: Type.Boolean({ description: "Keeps memory over an episode: needs a `session_id`." }),
    bundle: Type.String({
      enum: ["trained", "reference"],
      description:
        "`reference`: random weights, or no model at all (device `echo`). Its rows must never move a real arm.",
    }),
    ready: Type.Boolean({ description: "`false` while it is still being loaded." }),
  },
  { title: "Robot model" },
);

export const RobotModels = Type.Object(
  { object: Type.Literal("list"), data: Type.Array(RobotModel) },
  { title: "Robot models" },
);

export const robotModelsOperation: Operation = {
  operationId: "listRobotModels",
  summary: "The robot models, with their facts",
  description: "`POST /v1/chat/completions` with a text alone describes one of them in words.",
  responses: {
    "200": { description: "Every served robot model.", headers: headers(), content: json("RobotModels") },
  },
};
