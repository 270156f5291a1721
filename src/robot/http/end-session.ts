/** `DELETE /v1/robot/sessions/{session_id}?model=ID`: ends a session of the key's account at once. */
import type { Principal } from "../../http/principal.ts";
import type { Reply } from "../../http/reply.ts";
import type { Call } from "../../http/route.ts";
import type { RobotDeps } from "../deps.ts";

/** Always 204, whether or not there was such a session. */
export async function endSession(
  { sessions }: RobotDeps,
  { request, params, principal: { accountId } }: Call<Principal, undefined>,
): Promise<Reply> {
  const model = new URL(request.url).searchParams.get("model") ?? "";
  // null: the path is not valid UTF-8, so it names no session.
  const sessionId = params.session_id;
  if (typeof sessionId === "string") sessions.end({ accountId, model, sessionId });
  return { status: 204, body: null };
}
