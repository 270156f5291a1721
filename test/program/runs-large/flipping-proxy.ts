/** A way to the service that turns one bit of a body over, as a bad cable or a bad memory does. */
import { RandomStream } from "../../../src/std/random.ts";

/** The address of the proxy before `upstream`. */
export function flippingProxy(upstream: string, seed: string): { readonly url: string } & AsyncDisposable {
  const random = new RandomStream(seed);
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      const body = new Uint8Array(await request.arrayBuffer());
      const at = random.word() % body.length;
      body[at] = (body[at] ?? 0) ^ (1 << (random.word() % 8));
      const { method, headers } = request;
      return await fetch(`${upstream.replace(/\/$/, "")}${pathname}${search}`, { method, headers, body });
    },
  });
  return { url: server.url.href, [Symbol.asyncDispose]: () => server.stop(true) };
}
