/** The public routes. Elysia parses nothing for us: keys are checked before a body is read, and errors are our own. */
import { Elysia } from "elysia";
import { LIMITS } from "../limits.ts";
import { docs } from "./docs/docs.ts";
import { answer, notFound } from "./http/answer.ts";
import { llmModels } from "./llm/models.ts";
import { deviceAuthorization, revoke, token } from "./oauth/oauth.ts";
import { healthz, readyz } from "./ops/health.ts";
import { pages } from "./pages/routes.ts";
import { chat } from "./robot-http/chat.ts";
import { endSession } from "./robot-http/end-session.ts";
import { socketOptions, upgrade } from "./robot-socket/upgrade.ts";
import type { Service } from "./service.ts";

export function publicApp(service: Service, silentSeconds: number = LIMITS.socketSilentSeconds) {
  return (
    new Elysia({ strictPath: true, websocket: socketOptions(silentSeconds) })
      // A Host that is none makes an address that is none: there is no such route.
      .onRequest(({ request }) =>
        URL.canParse(request.url) ? undefined : answer(service, "unknown", async () => notFound()),
      )
      .onError(({ code, error }) => answer(service, "unknown", () => unmatched(code, error)))
      .post("/v1/chat/completions", ({ request }) => answer(service, "chat", () => chat(service, request)), {
        parse: "none",
      })
      .delete("/v1/robot/sessions/:session_id", ({ request, params }) =>
        answer(service, "session_end", () => endSession(service, request, params.session_id)),
      )
      .get("/v1/responses", ({ request, server }) => upgrade(service, request, server))
      .get("/v1/models", ({ request }) => answer(service, "models", () => llmModels(service, request)))
      .post(
        "/oauth/device_authorization",
        ({ request, server }) =>
          answer(service, "oauth", () => deviceAuthorization(service, request, server?.requestIP(request)?.address)),
        { parse: "none" },
      )
      .post("/oauth/token", ({ request }) => answer(service, "oauth", () => token(service, request)), { parse: "none" })
      .post("/oauth/revoke", ({ request }) => answer(service, "oauth", () => revoke(service, request)), {
        parse: "none",
      })
      .use(pages(service))
      .get("/healthz", () => answer(service, "healthz", () => healthz()))
      .get("/readyz", () => answer(service, "readyz", () => readyz(service)))
      .use(docs(service))
  );
}

/** What Elysia could not route is 404; anything else that it throws is a fault of ours. */
export async function unmatched(code: string | number, error: unknown) {
  if (code === "NOT_FOUND") return notFound();
  throw error;
}
