/** `DELETE /v1/robot/sessions/{session_id}?model=ID`: ends a session of the key's account at once. */
import type { Principal } from "../../account/authenticate.ts";
import type { RobotDeps } from "../../robot/deps.ts";
import type { Reply } from "../http/reply.ts";
import type { Call } from "../http/route.ts";

/** Always 204, whether or not there was such a session: afterwards there is none. */
export async function endSession(
  { sessions }: RobotDeps,
  { request, params, principal: { accountId } }: Call<Principal, undefined>,
): Promise<Reply> {
  const model = new URL(request.url).searchParams.get("model") ?? "";
  const sessionId = params.session_id;
  // A path that is not UTF-8 names no session.
  if (typeof sessionId === "string") sessions.end({ accountId, model, sessionId });
  return { status: 204, body: null };
}
