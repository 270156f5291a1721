/** `/sign-in`, `/sign-out`, `/sign-up`, and `/welcome`, where one-time links lead. */

import type { Reply } from "../../http/reply.ts";
import { LIMITS } from "../../limits.ts";
import { type LinkFor, PageRefusal } from "../people.ts";
import { signInPage, signUpPage, welcomePage } from "../views/sign-in.ts";
import { again, cookie, elsewhere, type FormVisit, formPerson, message, nextOf, shown, type Visit } from "./page.ts";

/** The ways in beside the password. */
function offered({ people, oidc }: Visit["deps"]) {
  return { signUpOpen: people.signUpOpen, ...(oidc && { provider: oidc.name }) };
}

const passwordCharsMin = LIMITS.passwordCharsMin;

export async function showSignIn({ deps, request }: Visit): Promise<Reply> {
  const next = nextOf(new URL(request.url).searchParams.get("next") ?? "");
  return shown(signInPage({ email: "", next, ...offered(deps) }));
}

export async function signIn(from: FormVisit): Promise<Reply> {
  const { form } = from;
  const { people } = from.deps;
  const [email, next] = [form("email"), nextOf(form("next"))];
  const token = await people.signIn({ email, password: form("password"), network: from.network });
  if (typeof token === "string") return elsewhere(next, cookie(from.origin, token));
  return again(signInPage({ email, next, problem: token.text, ...offered(from.deps) }), token);
}

export async function signOut(from: FormVisit): Promise<Reply> {
  const who = await formPerson(from, "/account");
  if (!("token" in who)) return who;
  const refused = await from.deps.people.signOut(who);
  if (refused) return message("You are still signed in", refused);
  return elsewhere("/sign-in", cookie(from.origin, ""));
}

export async function showSignUp({ deps }: Visit): Promise<Reply> {
  if (deps.people.signUpOpen) return shown(signUpPage({ email: "", passwordCharsMin }));
  return message("No sign-up here", new PageRefusal("Accounts of this service are made by its operator.", "notFound"));
}

export async function signUp(from: FormVisit): Promise<Reply> {
  const { form } = from;
  const email = form("email");
  const token = await from.deps.people.signUp({ email, password: form("password"), network: from.network });
  if (typeof token === "string") return elsewhere("/account", cookie(from.origin, token));
  if (token.kind === "notFound") return message("No sign-up here", token);
  return again(signUpPage({ email, problem: token.text, passwordCharsMin }), token);
}

export async function showWelcome({ deps, request }: Visit): Promise<Reply> {
  const token = new URL(request.url).searchParams.get("token") ?? "";
  const link = await deps.people.link(token);
  if (link instanceof PageRefusal) return message("This link does not work", link);
  return shown(welcomePage({ token, ...linkFields(link), passwordCharsMin }));
}

export async function welcome(from: FormVisit): Promise<Reply> {
  const { form } = from;
  const { people } = from.deps;
  const chosen = { password: form("password"), keys: form("keys") };
  const typed = { token: form("token"), email: form("email"), ...chosen, network: from.network };
  const signedIn = await people.redeem(typed);
  if (typeof signedIn === "string") {
    if (chosen.keys === "revoke") await from.deps.keys.refresh();
    return elsewhere("/account", cookie(from.origin, signedIn));
  }
  const link = await people.link(typed.token);
  if (link instanceof PageRefusal) return message("This link does not work", link);
  const fields = { ...linkFields(link), ...(link.operator ? { email: typed.email } : {}) };
  const html = welcomePage({ token: typed.token, ...fields, problem: signedIn.text, passwordCharsMin });
  return again(html, signedIn);
}

function linkFields({ operator, email, keys }: LinkFor) {
  return { operator, email, keys, emailFixed: !operator };
}
