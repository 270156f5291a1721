/** The routes of the pages for people. They are not in the document of the API. */

import { form, NO_BODY } from "../../http/body-rules.ts";
import { NO_KEY } from "../../http/principal.ts";
import type { Reply } from "../../http/reply.ts";
import { type Arrival, type Outcome, type Route, route } from "../../http/route.ts";
import type { Surface } from "../../http/surface.ts";
import { LIMITS } from "../../limits.ts";
import { sendPlayer } from "../../runs/pages/player.ts";
import { deleteRun, sendFile, showManifest, showRun, showRuns } from "../../runs/pages/runs.ts";
import { PLAYER_ADDRESS } from "../../runs/views/player-script.ts";
import { changeAccount, changeLimit, changePassword, createKey, revokeKey, showAccount } from "./account.ts";
import { decide, enterCode, showDevice } from "./device.ts";
import { PAGE, PAGE_ANSWERS } from "./errors.ts";
import { finishOidc, OIDC_BACK, startOidc } from "./oidc.ts";
import { type FormVisit, foreign, type PagesDeps, unreadable, type Visit } from "./page.ts";
import { showSignIn, showSignUp, showWelcome, signIn, signOut, signUp, welcome } from "./sign-in.ts";

export function pages(deps: PagesDeps): Surface {
  const visit = (arrival: Arrival): Visit => {
    const { request, params, origin } = arrival;
    return { deps, request, params, origin, network: origin.network };
  };
  const declared = { name: "page", key: NO_KEY } as const;
  const get = (path: string, show: (from: Visit) => Promise<Outcome>): Route =>
    route({ ...declared, method: "GET", path, body: NO_BODY, handle: (call) => show(visit(call)) });
  const post = (path: string, take: (from: FormVisit) => Promise<Reply>): Route =>
    route({
      ...declared,
      method: "POST",
      path,
      body: form(LIMITS.formBytesMax),
      handle: async (call) => (call.origin.isForeign ? foreign() : await take({ ...visit(call), form: call.body })),
    });
  return {
    tag: "Pages",
    answers: PAGE_ANSWERS,
    failureForm: { table: PAGE, write: unreadable },
    routes: [
      get("/sign-in", showSignIn),
      post("/sign-in", signIn),
      get("/sign-in/oidc", startOidc),
      get(OIDC_BACK, finishOidc),
      post("/sign-out", signOut),
      get("/sign-up", showSignUp),
      post("/sign-up", signUp),
      get("/welcome", showWelcome),
      post("/welcome", welcome),
      get("/device", showDevice),
      post("/device", enterCode),
      post("/device/decide", decide),
      get("/account", showAccount),
      post("/account/keys", changeAccount(createKey)),
      post("/account/keys/revoke", changeAccount(revokeKey)),
      post("/account/limit", changeAccount(changeLimit)),
      post("/account/password", changeAccount(changePassword)),
      get("/account/runs", showRuns),
      post("/account/runs/delete", deleteRun),
      get("/account/runs/:robot/:run", showRun),
      get("/account/runs/:robot/:run/manifest.json", showManifest),
      get("/account/runs/:robot/:run/files/*", sendFile),
      get(PLAYER_ADDRESS, sendPlayer),
    ],
  };
}
