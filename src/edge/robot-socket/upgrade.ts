/**
 * Upgrades `GET /v1/responses` to a WebSocket. Elysia's own socket routes parse text and turn bytes into JSON, so the upgrade
 * is done here: Elysia calls the handlers in `data` with Bun's socket.
 */
import type { Server, ServerWebSocket } from "bun";
import { Failure } from "../../error/core.ts";
import { LIMITS } from "../../limits.ts";
import { shuttingDown } from "../../robot/interruptions.ts";
import { answer, notFound } from "../http/answer.ts";
import { principalOf } from "../http/principal.ts";
import type { Service } from "../service.ts";
import { Episode } from "./episode.ts";
import { Outbox } from "./outbox.ts";

/** The handlers that Elysia calls on a socket's `data`. */
interface Handlers {
  open(socket: ServerWebSocket<Handlers>): void;
  message(socket: ServerWebSocket<Handlers>, message: string | Buffer): void;
  close(): void;
}

/** `silentSeconds`: a client that sends nothing for so long, not even a pong, is disconnected. */
export function socketOptions(silentSeconds: number) {
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

/** Undefined if the connection is a WebSocket now. */
export async function upgrade(
  service: Service,
  request: Request,
  server: Server<unknown> | null,
): Promise<Response | undefined> {
  const refused = await connect(service, request, server);
  return refused && (await answer(service, "episode", async () => refused));
}

async function connect(
  service: Service,
  request: Request,
  server: Server<unknown> | null,
): Promise<Failure | undefined> {
  const principal = await principalOf(service, request);
  if (principal instanceof Failure) return principal;
  if (request.headers.get("upgrade")?.toLowerCase() !== "websocket") return notFound();
  if (service.lifecycle.draining) return shuttingDown();
  const { accountId } = principal;
  const leave = service.sockets.enter(accountId);
  if (leave instanceof Failure) return leave;
  const client = { accountId, authorization: request.headers.get("authorization") };
  // Bun accepts the first subprotocol that a client offers; with an empty value it sends no header.
  const headers = { "Sec-WebSocket-Protocol": "" };
  if (server?.upgrade(request, { headers, data: handlers(service, client, leave) })) return undefined;
  leave();
  return notFound();
}

function handlers(
  service: Service,
  client: { readonly accountId: string; readonly authorization: string | null },
  leave: () => void,
): Handlers {
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
    close() {
      episode?.dropped();
      leave();
    },
  };
}
