/** Opening and closing a listening socket for an app. */
import type { AnyElysia } from "elysia";
import type { Address } from "../../config/fields.ts";
import { Problem } from "../../error/problem.ts";
import { LIMITS } from "../../limits.ts";
import { systemClock } from "../../std/clock.ts";

export interface Listener {
  /** Base address without a slash at its end, with the real port. */
  readonly url: string;
  readonly port: number;
  /** Accepts nothing new, lets the last answers leave, then closes every connection. */
  stop(): Promise<void>;
}

/** `answerSeconds`: the longest that an answer may take. */
export function listen(
  app: AnyElysia,
  { host, port }: Address,
  answerSeconds: number = LIMITS.chunkSecondsDefault,
): Listener | Problem {
  try {
    // Elysia shares ports by default: a second server would silently take half of the requests.
    app.listen({
      hostname: host,
      port,
      reusePort: false,
      // Bun takes a connection that waits for its answer to be idle as well.
      idleTimeout: Math.max(LIMITS.connectionIdleSeconds, Math.ceil(answerSeconds) + 10),
      maxRequestBodySize: LIMITS.serverBodyBytesMax,
      // Otherwise Bun prints the error of every stream that is cut off.
      development: false,
    });
  } catch (error) {
    const taken = (error as { code?: string }).code === "EADDRINUSE";
    const reason = taken ? "the port is taken; choose another one, or 0 for a free one" : (error as Error).message;
    return new Problem(`cannot listen on ${host}:${port}: ${reason}`);
  }
  const { server } = app;
  if (!server) return new Problem(`cannot listen on ${host}:${port}`);
  return {
    url: `http://${host.includes(":") ? `[${host}]` : host}:${server.port}`,
    port: server.port ?? port,
    stop: async () => {
      // A client that has stopped in the middle of its body would keep this waiting.
      const { promise, resolve } = Promise.withResolvers<void>();
      const disarm = systemClock.after(LIMITS.flushMs, resolve);
      await Promise.race([server.stop(), promise]);
      disarm();
      await server.stop(true);
    },
  };
}
