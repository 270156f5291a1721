/** The events of a response as an HTTP answer. */
import type { Arrival, Reply } from "../../http/route.ts";
import { SSE_HEADERS } from "../../http/sse.ts";
import { LIMITS } from "../../limits.ts";
import type { ResponseStream } from "../command.ts";

export function streamed(
  { request, server }: Pick<Arrival, "request" | "server">,
  { flow }: ResponseStream,
  headers: Readonly<Record<string, string>> = {},
): Reply {
  // There is always something to send now, so a client that takes nothing in this time does not read.
  server?.timeout(request, LIMITS.llmUnreadSeconds);
  return { status: 200, body: flow, headers: { ...SSE_HEADERS, ...headers } };
}
