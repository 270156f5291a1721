/**
 * A listener that reads whatever a crowd sends and refuses it, without any work: a robot beside such a crowd shows what the crowd's own
 * program takes of the cores. Prints its address.
 */
import { print } from "../src/cli/frame/print.ts";

const SMALL_BYTES = 1_000_000;

const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  websocket: {
    open: (socket) => socket.close(1008, "refused"),
    message: () => {},
  },
  async fetch(request, listener) {
    if (request.headers.get("upgrade") === "websocket" && listener.upgrade(request)) return undefined;
    const reader = request.body?.getReader();
    while (reader && !(await reader.read()).done);
    const isLarge = Number(request.headers.get("content-length") ?? 0) > SMALL_BYTES;
    return new Response('{"error":{}}', { status: isLarge ? 400 : 401 });
  },
});
await print(server.url.origin);
