/**
 * An app is a list of surfaces: their routes are registered here and nowhere else. Elysia parses
 * nothing for us: keys are checked before a body is read, and errors are our own.
 */
import { Elysia } from "elysia";
import { answer, type Target } from "./answer.ts";
import type { HttpDeps } from "./deps.ts";
import { docs } from "./document/docs.ts";
import { type Arrival, notFound } from "./route.ts";
import type { Surface } from "./surface.ts";

/** What clients reach: the surfaces and their documentation. */
export function publicApp(deps: HttpDeps, surfaces: readonly Surface[]) {
  return appOf(deps, [...surfaces, docs(surfaces)]);
}

export function appOf(deps: HttpDeps, surfaces: readonly Surface[]) {
  // Elysia answers HEAD with the handler of GET, whose whole body it reads for its length, unless it is answered before.
  const heads: { readonly path: RegExp; readonly target: Target }[] = [];
  const websocket = surfaces.find(({ socket }) => socket)?.socket;
  // Elysia looks for the path behind a host of at least four characters, otherwise: `http://gpu/` has three.
  const handler = { standardHostname: false };
  const app = new Elysia({ strictPath: true, handler, ...(websocket && { websocket }) })
    .onRequest(({ request, server }) => {
      // A malformed Host makes the address malformed: there is no such route.
      if (!URL.canParse(request.url)) return answer(deps, UNMATCHED, request, NO_PARAMS, null);
      const head = request.method === "HEAD" && heads.find(({ path }) => path.test(new URL(request.url).pathname));
      return head ? answer(deps, head.target, request, NO_PARAMS, server) : undefined;
    })
    .onError(({ code, error, request }) => {
      // Every other error is a bug of ours, or of Elysia.
      const run = code === "NOT_FOUND" ? UNMATCHED.run : () => Promise.reject(error);
      return answer(deps, { ...UNMATCHED, run }, request, NO_PARAMS, null);
    });
  for (const { routes, answers, failureForm } of surfaces) {
    for (const { method, path, name, run } of routes) {
      const target: Target = {
        name,
        ...(failureForm && { failureForm }),
        run: (arrival) => run(deps, answers, arrival),
      };
      if (method === "HEAD") heads.push({ path: pattern(path), target });
      const handle = ({ request, params, server }: Context) =>
        answer(deps, target, request, params ?? NO_PARAMS, server);
      app.route(method, path, handle, { config: {}, parse: "none" });
    }
  }
  return app;
}

/** Matches the paths of a route. */
function pattern(path: string): RegExp {
  return new RegExp(`^${path.replace(/:\w+/g, "[^/]+").replace(/\*$/, ".*")}$`);
}

/** What of Elysia's context is used; it has no parameters where the path has none. */
interface Context {
  readonly request: Request;
  readonly params?: Arrival["params"];
  readonly server: Arrival["server"];
}

const NO_PARAMS = {};

const UNMATCHED: Target = { name: "unknown", run: async () => notFound() };
