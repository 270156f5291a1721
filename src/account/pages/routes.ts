/** The routes of the pages for people. They are not in the document of the API. */
import type { Surface } from "../../http/surface.ts";
import { changeAccount, changeLimit, changePassword, showAccount } from "./account.ts";
import { decide, enterCode, showDevice } from "./device.ts";
import { disconnectIdentity } from "./identities.ts";
import { createKey, revokeKey } from "./keys.ts";
import { connectIdentity, finishOidc, OIDC_BACK, startOidc } from "./oidc.ts";
import { type PagesDeps, pageRoutes } from "./page.ts";
import { showSignIn, showSignUp, showWelcome, signIn, signOut, signUp, welcome } from "./sign-in.ts";

export function pages(deps: PagesDeps): Surface {
  const { get, post, surface } = pageRoutes(deps);
  return surface([
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
    post("/account/identities", connectIdentity),
    post("/account/identities/disconnect", changeAccount(disconnectIdentity)),
    post("/account/limit", changeAccount(changeLimit)),
    post("/account/password", changeAccount(changePassword)),
  ]);
}
