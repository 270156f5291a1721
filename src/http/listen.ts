/** Opening and closing a listening socket for an app, and changing its certificate while it serves. */
import { rmSync } from "node:fs";
import type { AnyElysia } from "elysia";
import type { Address } from "../config/fields.ts";
import { LIMITS } from "../limits.ts";
import { sleep, systemClock } from "../std/clock.ts";
import { Problem } from "../std/problem.ts";
import type { Certificate } from "./certificate.ts";
import type { Listeners } from "./connection-watch.ts";

export interface Listener {
  /** Base address without a slash at its end, with the real port. */
  readonly url: string;
  readonly port: number;
  /**
   * New connections get this certificate, open ones keep theirs. `sockets`: the listening sockets of the port, since one of them must
   * hand it to the next without losing a connection.
   */
  renew(certificate: Certificate, sockets: Listeners): Promise<undefined | Problem>;
  /** Accepts nothing new, lets the last answers leave, then closes every connection. */
  stop(): Promise<void>;
}

export interface ListenOptions {
  /** The longest that an answer may take. */
  readonly answerSeconds?: number;
  readonly certificate?: Certificate | undefined;
}

type Served = NonNullable<AnyElysia["server"]>;

/** Listens on a Unix socket, for every user that may write to the file. A socket that a process left there is replaced. */
export function listenLocal(app: AnyElysia, path: string): Pick<Listener, "stop"> | Problem {
  try {
    rmSync(path, { force: true });
  } catch (error) {
    return new Problem(`cannot listen on ${path}: ${(error as Error).message}`);
  }
  const server = open(app, { unix: path }, {});
  return server instanceof Problem ? server : { stop: () => server.stop(true) };
}

export function listen(app: AnyElysia, address: Address, options: ListenOptions = {}): Listener | Problem {
  const { host } = address;
  const first = open(app, tcp(address, false), options);
  if (first instanceof Problem) return first;
  const port = first.port ?? address.port;
  let current = first;
  /** Servers that accept nothing any more, and whose connections are still open. */
  const former: Served[] = [];
  const scheme = options.certificate ? "https" : "http";
  return {
    url: `${scheme}://${host.includes(":") ? `[${host}]` : host}:${port}`,
    port,
    renew: async (certificate, sockets) => {
      // The port is shared for this moment only: a second service, which does not ask to share, is refused before and after.
      sockets.share(true);
      try {
        const next = open(app, tcp({ host, port }, true), { ...options, certificate });
        if (next instanceof Problem) return next;
        const before = current;
        current = next;
        former.push(before);
        sockets.receiveAtMost(LIMITS.receivedBytesMax);
        sockets.preferLast();
        // Handshakes that have begun end at the socket where they began, and what waits there is still accepted.
        await sleep(systemClock, LIMITS.certificateHandoverMs);
        // It ends with its last connection, in the background.
        before.stop().catch(() => undefined);
        return undefined;
      } finally {
        sockets.share(false);
      }
    },
    stop: async () => {
      // A client that has stopped in the middle of its body would keep this waiting.
      const { promise, resolve } = Promise.withResolvers<void>();
      const disarm = systemClock.after(LIMITS.flushMs, resolve);
      const all = [current, ...former];
      await Promise.race([Promise.all(all.map((server) => server.stop())), promise]);
      disarm();
      await Promise.all(all.map((server) => server.stop(true)));
    },
  };
}

/** The address of a server in Bun's form. */
type Binding =
  | { readonly hostname: string; readonly port: number; readonly reusePort: boolean }
  | { readonly unix: string };

/** Elysia shares ports by default: a second server would silently take half of the requests. */
function tcp({ host, port }: Address, reusePort: boolean): Binding {
  return { hostname: host, port, reusePort };
}

function open(
  app: AnyElysia,
  binding: Binding,
  { answerSeconds = LIMITS.chunkSecondsDefault, certificate }: ListenOptions,
): Served | Problem {
  const where = "unix" in binding ? binding.unix : `${binding.hostname}:${binding.port}`;
  const known = new Set(process.listeners("beforeExit"));
  try {
    const settings = {
      ...binding,
      // Bun takes a connection that waits for its answer to be idle as well.
      idleTimeout: Math.max(LIMITS.connectionIdleSeconds, Math.ceil(answerSeconds) + 10),
      maxRequestBodySize: LIMITS.serverBodyBytesMax,
      // Otherwise Bun prints the error of every stream that is cut off.
      development: false,
      ...(certificate && { tls: { cert: certificate.cert, key: certificate.key } }),
    };
    // Elysia's types have no Unix sockets, but it passes every setting on to Bun.
    app.listen(settings as Parameters<typeof app.listen>[0]);
  } catch (error) {
    const taken = (error as { code?: string }).code === "EADDRINUSE";
    const reason = taken ? "the port is taken; choose another one, or 0 for a free one" : (error as Error).message;
    return new Problem(`cannot listen on ${where}: ${reason}`);
  }
  // Elysia would stop its server when the process ends by itself, which ours never does; each certificate would add one more.
  for (const added of process.listeners("beforeExit")) if (!known.has(added)) process.off("beforeExit", added);
  return app.server ?? new Problem(`cannot listen on ${where}`);
}
