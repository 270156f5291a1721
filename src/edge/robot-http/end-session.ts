/** `DELETE /v1/robot/sessions/{session_id}?model=ID`: ends a session of the key's account at once. */
import { Failure } from "../../error/core.ts";
import type { Reply } from "../http/answer.ts";
import { principalOf } from "../http/principal.ts";
import type { Service } from "../service.ts";

/** Always 204, whether or not there was such a session. */
export async function endSession(
  service: Service,
  request: Request,
  sessionId: string | null,
): Promise<Reply | Failure> {
  const principal = await principalOf(service, request);
  if (principal instanceof Failure) return principal;
  const model = new URL(request.url).searchParams.get("model") ?? "";
  // null: the path is not valid UTF-8, so it names no session.
  if (sessionId !== null) service.sessions.end({ accountId: principal.accountId, model, sessionId });
  return { status: 204, body: null };
}
