/**
 * Upgrades `GET /v1/responses` to a WebSocket. Elysia's own socket routes parse text and turn bytes into JSON, so the upgrade
 * is done here: Elysia calls the handlers in `data` with Bun's socket.
 */
import type { ServerWebSocket } from "bun";
import { NO_BODY } from "../../http/body-rules.ts";
import { peerName } from "../../http/connections.ts";
import type { Principal } from "../../http/deps.ts";
import { headers, type Operation } from "../../http/operation.ts";
import { type Arrival, type Call, KEY, notFound, type Outcome, route } from "../../http/route.ts";
import type { Surface } from "../../http/surface.ts";
import { LIMITS } from "../../limits.ts";
import { EVERY } from "../../std/every-route.ts";
import { Failure } from "../../std/failure.ts";
import { ROBOT_ANSWERS } from "../errors.ts";
import { Episode } from "./episode.ts";
import { HalfMessage } from "./half-messages.ts";
import type { Client } from "./observe.ts";
import { Outbox } from "./outbox.ts";
import type { RobotSocketDeps } from "./sockets.ts";

export function robotSocket({ socket: deps }: { readonly socket: RobotSocketDeps }): Surface {
  return {
    tag: "Robot models",
    answers: ROBOT_ANSWERS,
    socket: {
      maxPayloadLength: LIMITS.socketPayloadBytesMax,
      idleTimeout: deps.silentSeconds,
      sendPings: true,
      perMessageDeflate: false,
      // Above this limit Bun drops messages silently; the outbox closes the connection before.
      backpressureLimit: 2 * LIMITS.socketUnsentBytesMax,
      closeOnBackpressureLimit: false,
    },
    page: {
      name: "episodes",
      operationId: "docsEpisodes",
      title: "Episodes on a WebSocket",
      description: "What is said on `GET /v1/responses`, with two whole clients.",
      make: async () => (await import("../docs/episodes.ts")).episodesPage(),
    },
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

async function upgrade(deps: RobotSocketDeps, call: Call<Principal, undefined>): Promise<Outcome> {
  const { request, server, requestId } = call;
  if (request.headers.get("upgrade")?.toLowerCase() !== "websocket") return notFound();
  const { accountId, keyPublicId: keyId } = call.principal;
  const leave = deps.sockets.enter(accountId);
  if (leave instanceof Failure) return leave;
  const client = { requestId, accountId, keyId, authorization: request.headers.get("authorization") };
  // Bun accepts the first subprotocol that a client offers; with an empty value it sends no header.
  const upgradeHeaders = { "Sec-WebSocket-Protocol": "", "X-Request-Id": requestId };
  if (server?.upgrade(request, { headers: upgradeHeaders, data: handlers(deps, client, leave, call) }))
    return "upgraded";
  leave();
  return notFound();
}

/** The handlers that Elysia calls on a socket's `data`. */
function handlers(service: RobotSocketDeps, client: Client, leave: () => void, arrival: Arrival) {
  let episode: Episode | undefined;
  // The request knows its peer's port, the socket does not.
  const peer = peerOf(arrival);
  let half: HalfMessage | undefined;
  let forget: () => unknown = () => {};
  return {
    open(socket: ServerWebSocket) {
      const outbox = new Outbox(socket, service.clock);
      const opened = new Episode(service, client, outbox, () => forget());
      if (peer !== undefined) half = metered(service, arrival, peer, outbox);
      forget = service.sockets.add(opened);
      episode = opened;
    },
    message(_socket: ServerWebSocket, message: string | Buffer) {
      half?.message(typeof message === "string" ? Buffer.byteLength(message) : message.length);
      episode?.receive(message);
    },
    ping() {
      half?.control();
    },
    pong() {
      half?.control();
      episode?.heard();
    },
    close() {
      const { meters } = service.halves;
      if (peer !== undefined && meters.get(peer) === half) meters.delete(peer);
      episode?.dropped();
      leave();
    },
  };
}

function peerOf({ server, request }: Arrival): string | undefined {
  const peer = server?.requestIP(request);
  return peer ? peerName(peer.address, peer.port) : undefined;
}

/** Begins to measure the socket's incomplete messages. */
function metered(service: RobotSocketDeps, arrival: Arrival, peer: string, outbox: Outbox): HalfMessage {
  const { request, requestId } = arrival;
  const lines = [...request.headers].reduce((bytes, [name, value]) => bytes + name.length + value.length + 4, 0);
  const { pathname, search } = new URL(request.url);
  const head = `GET ${pathname}${search} HTTP/1.1\r\n\r\n`.length + lines;
  const half = new HalfMessage(head, request.url.startsWith("https:"), (late) => {
    const reason = late ? "a message did not arrive whole in time" : "too many messages are incomplete; connect again";
    service.log.info("socket cut", { request: requestId, reason });
    outbox.close(late ? 1008 : 1013, reason);
  });
  service.halves.meters.set(peer, half);
  return half;
}
