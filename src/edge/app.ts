/**
 * From a request to its route. An app is a list of surfaces: their routes are registered here and nowhere else. Elysia parses
 * nothing for us: keys are checked before a body is read, and errors are our own.
 */
import { Elysia } from "elysia";
import { docs } from "./docs/docs.ts";
import type { HttpDeps } from "./http/deps.ts";
import { answer, notFound, type Target } from "./http/reply.ts";
import type { Arrival } from "./http/route.ts";
import type { Surface } from "./http/surface.ts";

/** What clients reach: the surfaces and their documentation. */
export function publicApp(deps: HttpDeps, surfaces: readonly Surface[]) {
  return appOf(deps, [...surfaces, docs(surfaces)]);
}

export function appOf(deps: HttpDeps, surfaces: readonly Surface[]) {
  const websocket = surfaces.find(({ socket }) => socket)?.socket;
  const app = new Elysia({ strictPath: true, ...(websocket && { websocket }) })
    // With a malformed Host the address is malformed: there is no such route.
    .onRequest(({ request }) =>
      URL.canParse(request.url) ? undefined : answer(deps, UNMATCHED, request, NO_PARAMS, null),
    )
    .onError(({ code, error, request }) =>
      answer(deps, code === "NOT_FOUND" ? UNMATCHED : broken(error), request, NO_PARAMS, null),
    );
  for (const { routes, answers, failureForm } of surfaces) {
    for (const { method, path, name, run } of routes) {
      const target: Target = {
        name,
        ...(failureForm && { failureForm }),
        run: (arrival) => run(deps, answers, arrival),
      };
      const handle = ({ request, params, server }: Context) =>
        answer(deps, target, request, params ?? NO_PARAMS, server);
      app.route(method, path, handle, { config: {}, parse: "none" });
    }
  }
  return app;
}

/** What of Elysia's context is used; it has no parameters where the path has none. */
interface Context {
  readonly request: Request;
  readonly params?: Arrival["params"];
  readonly server: Arrival["server"];
}

const NO_PARAMS = {};

const UNMATCHED: Target = { name: "unknown", run: async () => notFound() };

/** A bug of ours, or of Elysia. */
function broken(error: unknown): Target {
  const run = async () => {
    throw error;
  };
  return { name: "unknown", run };
}
