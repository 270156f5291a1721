/** The routes of the pages for people. */
import { Elysia } from "elysia";
import { answer, type Reply } from "../http/answer.ts";
import type { Service } from "../service.ts";
import { changeAccount, changeLimit, changePassword, createKey, revokeKey, showAccount } from "./account.ts";
import { decide, enterCode, showDevice } from "./device.ts";
import { type Visit, visit } from "./page.ts";
import { showSignIn, showSignUp, showWelcome, signIn, signOut, signUp, welcome } from "./sign-in.ts";

type Server = { requestIP(request: Request): { readonly address: string } | null } | null;

export function pages(service: Service) {
  const show = (work: (from: Visit) => Promise<Reply>, request: Request, server: Server) =>
    answer(service, "page", () => work(visit(service, request, server?.requestIP(request)?.address)));
  // Pages speak for themselves: they are not in the document of the API.
  const plain = { detail: { hide: true } } as const;
  const none = { parse: "none", ...plain } as const;
  return new Elysia({ strictPath: true })
    .get("/sign-in", ({ request, server }) => show(showSignIn, request, server), plain)
    .post("/sign-in", ({ request, server }) => show(signIn, request, server), none)
    .post("/sign-out", ({ request, server }) => show(signOut, request, server), none)
    .get("/sign-up", ({ request, server }) => show(showSignUp, request, server), plain)
    .post("/sign-up", ({ request, server }) => show(signUp, request, server), none)
    .get("/welcome", ({ request, server }) => show(showWelcome, request, server), plain)
    .post("/welcome", ({ request, server }) => show(welcome, request, server), none)
    .get("/device", ({ request, server }) => show(showDevice, request, server), plain)
    .post("/device", ({ request, server }) => show(enterCode, request, server), none)
    .post("/device/decide", ({ request, server }) => show(decide, request, server), none)
    .get("/account", ({ request, server }) => show(showAccount, request, server), plain)
    .post(
      "/account/keys",
      ({ request, server }) => show((from) => changeAccount(from, createKey), request, server),
      none,
    )
    .post(
      "/account/keys/revoke",
      ({ request, server }) => show((from) => changeAccount(from, revokeKey), request, server),
      none,
    )
    .post(
      "/account/limit",
      ({ request, server }) => show((from) => changeAccount(from, changeLimit), request, server),
      none,
    )
    .post(
      "/account/password",
      ({ request, server }) => show((from) => changeAccount(from, changePassword), request, server),
      none,
    );
}
