/**
 * Upgrades `GET /v1/responses` to a WebSocket. Elysia's own socket routes parse text and turn bytes into JSON, so the upgrade
 * is done here: Elysia calls the handlers in `data` with Bun's socket.
 */
import type { ServerWebSocket } from "bun";
import type { Principal } from "../../account/authenticate.ts";
import { Failure } from "../../error/core.ts";
import { EVERY } from "../../error/every-route.ts";
import { ROBOT_ANSWERS } from "../../error/robot.ts";
import { LIMITS } from "../../limits.ts";
import { NO_BODY } from "../http/body-rules.ts";
import { headers, type Operation } from "../http/operation.ts";
import { KEY } from "../http/principal.ts";
import { notFound } from "../http/reply.ts";
import { type Call, type Outcome, route } from "../http/route.ts";
import type { Surface } from "../http/surface.ts";
import { Episode } from "./episode.ts";
import type { Client } from "./observe.ts";
import { Outbox } from "./outbox.ts";
import type { RobotSocketDeps } from "./sockets.ts";

/** `silentSeconds`: after which a client that does not even answer a ping is gone. */
export function robotSocket(deps: RobotSocketDeps, silentSeconds: number = LIMITS.socketSilentSeconds): Surface {
  return {
    tag: "Robot models",
    answers: ROBOT_ANSWERS,
    socket: socketOptions(silentSeconds),
    routes: [
      route({
        method: "GET",
        path: "/v1/responses",
        name: "episode",
        key: KEY,
        body: NO_BODY,
        beginsWork: true,
        failures: [EVERY.not_found],
        operation,
        handle: (call) => upgrade(deps, call),
      }),
    ],
  };
}

const operation: Operation = {
  operationId: "openEpisode",
  summary: "A whole episode on one WebSocket",
  description:
    "The handshake of a WebSocket (RFC 6455), with the key in the same header as everywhere. Frames are binary messages, " +
    "decoded while they arrive; observations and chunks are text. Sessions are the same as over HTTP. The messages, the " +
    "errors and two whole clients stand on the page `/docs/episodes`.",
  responses: { "101": { description: "The connection is a WebSocket now.", headers: headers() } },
};

/** The handlers that Elysia calls on a socket's `data`. */
interface Handlers {
  open(socket: ServerWebSocket<Handlers>): void;
  message(socket: ServerWebSocket<Handlers>, message: string | Buffer): void;
  pong(): void;
  close(): void;
}

/** `silentSeconds`: a client that sends nothing for so long, not even a pong, is disconnected. */
function socketOptions(silentSeconds: number) {
  return {
    maxPayloadLength: LIMITS.socketPayloadBytesMax,
    idleTimeout: silentSeconds,
    sendPings: true,
    perMessageDeflate: false,
    // Checked by the outbox before this limit is reached: above it Bun drops messages silently.
    backpressureLimit: 2 * LIMITS.socketUnsentBytesMax,
    closeOnBackpressureLimit: false,
  };
}

async function upgrade(deps: RobotSocketDeps, call: Call<Principal, undefined>): Promise<Outcome> {
  const { request, server, requestId } = call;
  if (request.headers.get("upgrade")?.toLowerCase() !== "websocket") return notFound();
  const { accountId, keyPublicId: keyId } = call.principal;
  const leave = deps.sockets.enter(accountId);
  if (leave instanceof Failure) return leave;
  const client = { requestId, accountId, keyId, authorization: request.headers.get("authorization") };
  // Bun accepts the first subprotocol that a client offers; with an empty value it sends no header.
  const upgradeHeaders = { "Sec-WebSocket-Protocol": "", "X-Request-Id": requestId };
  if (server?.upgrade(request, { headers: upgradeHeaders, data: handlers(deps, client, leave) })) return "upgraded";
  leave();
  return notFound();
}

function handlers(service: RobotSocketDeps, client: Client, leave: () => void): Handlers {
  let episode: Episode | undefined;
  let forget = () => {};
  return {
    open(socket) {
      const opened = new Episode(service, client, new Outbox(socket, service.clock), () => forget());
      forget = service.sockets.add(opened);
      episode = opened;
    },
    message(_socket, message) {
      episode?.receive(message);
    },
    pong() {
      episode?.heard();
    },
    close() {
      episode?.dropped();
      leave();
    },
  };
}
