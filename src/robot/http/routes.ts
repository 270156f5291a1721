/** The robot models over HTTP: `POST /v1/chat/completions`, the end of a session, the list of models. */
import { exactSize } from "../../bundle/describe.ts";
import type { Manifest } from "../../bundle/manifest.ts";
import { json, NO_BODY } from "../../http/body-rules.ts";
import type { Principal } from "../../http/deps.ts";
import { type Call, KEY, type Reply, route } from "../../http/route.ts";
import type { Surface } from "../../http/surface.ts";
import { LIMITS } from "../../limits.ts";
import type { Served } from "../catalog.ts";
import type { RobotDeps } from "../command.ts";
import { EXAMPLE, firstRequest } from "../docs/example.ts";
import { ROBOT, ROBOT_ANSWERS } from "../errors.ts";
import { chat, type RobotHttpDeps } from "./chat.ts";
import { chatOperation, endSessionOperation, ROBOT_HEADERS, ROBOT_SCHEMAS, robotModelsOperation } from "./openapi.ts";

export function robotHttp(deps: RobotHttpDeps): Surface {
  const models = () => [...deps.robot.catalog.models.values()].map(facts);
  return {
    tag: "Robot models",
    answers: ROBOT_ANSWERS,
    routes: [
      route({
        method: "POST",
        path: "/v1/chat/completions",
        name: "chat",
        key: KEY,
        body: json(LIMITS.robotBodyBytesMax, {
          use: "images",
          smaller: "send fewer or more strongly compressed frames",
        }),
        beginsWork: true,
        paid: true,
        failures: Object.values(ROBOT),
        operation: chatOperation,
        handle: (call) => chat(deps, call),
      }),
      route({
        method: "DELETE",
        path: "/v1/robot/sessions/:session_id",
        name: "session_end",
        key: KEY,
        body: NO_BODY,
        operation: endSessionOperation,
        handle: (call) => endSession(deps.robot, call),
      }),
      route({
        method: "GET",
        path: "/v1/robot/models",
        name: "robot_models",
        key: KEY,
        body: NO_BODY,
        operation: robotModelsOperation,
        handle: async () => ({ status: 200, body: JSON.stringify({ object: "list", data: models() }) }),
      }),
    ],
    schemas: ROBOT_SCHEMAS,
    headers: ROBOT_HEADERS,
    examples: { observation: { summary: "What `tendon sample` writes, with smaller frames", value: EXAMPLE } },
    firstRequest,
  };
}

/** Always 204, whether or not there was such a session. */
async function endSession(
  { sessions }: RobotDeps,
  { request, params, principal: { accountId } }: Call<Principal, undefined>,
): Promise<Reply> {
  const model = new URL(request.url).searchParams.get("model") ?? "";
  // null: the path is not valid UTF-8, so it names no session.
  const sessionId = params.session_id;
  if (typeof sessionId === "string") sessions.end({ accountId, model, sessionId });
  return { status: 204, body: null };
}

/** What `tendon models` prints of a robot model, for programs (contract section 9). */
function facts({ manifest, model, warning }: Served): object {
  const { id, title, cameras, frames, state, action, stateful } = manifest;
  return {
    ...{ id, object: "robot.model", title, cameras },
    frames: { first: frames.first, later: frames.later },
    frame_size: exactSize(manifest),
    ...{
      state: state.kind,
      state_columns: state.columns.map(({ name, unit, from, index }) => ({ name, unit, from, index })),
    },
    ...{ rows: action.rows, dt: 1 / action.hz },
    ...{ action_dim: action.columns.length, action_space: action.space, action_columns: action.columns.map(limits) },
    stateful,
    bundle: warning === undefined ? "trained" : "reference",
    ready: model !== undefined,
  };
}

function limits({ name, unit, min, max, max_jump, max_step }: Manifest["action"]["columns"][number]): object {
  return { name, unit, min, max, max_jump, max_step };
}
