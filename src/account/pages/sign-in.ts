/** `/sign-in`, `/sign-out`, `/sign-up`, and `/welcome`, where one-time links lead. */
import type { Reply } from "../../http/route.ts";
import { field, hidden, keysChoice, newPassword, ownPassword } from "../../web/field.ts";
import { layout } from "../../web/layout.ts";
import { type Html, html } from "../../web/markup.ts";
import { PageRefusal } from "../errors.ts";
import type { LinkFor } from "../people.ts";
import {
  again,
  cookie,
  cookieValue,
  elsewhere,
  type FormVisit,
  formPerson,
  KNOWN_COOKIE,
  message,
  nextOf,
  shown,
  signedInCookies,
  type Visit,
} from "./page.ts";

/** The ways to sign in besides an existing password. */
function offered({ people, oidc }: Visit["deps"]) {
  return { signUpOpen: people.signUpOpen, ...(oidc && { provider: oidc.name }) };
}

export async function showSignIn({ deps, request }: Visit): Promise<Reply> {
  const next = nextOf(new URL(request.url).searchParams.get("next") ?? "");
  return shown(signInPage({ email: "", next, ...offered(deps) }));
}

export async function signIn(from: FormVisit): Promise<Reply> {
  const { deps, form, origin } = from;
  const [email, next] = [form("email"), nextOf(form("next"))];
  const typed = { email, password: form("password"), network: origin.network, known: cookieValue(from, KNOWN_COOKIE) };
  const signedIn = await deps.people.signIn(typed);
  if (!(signedIn instanceof PageRefusal)) return elsewhere(next, signedInCookies(origin, signedIn));
  return again(signInPage({ email, next, problem: signedIn.text, ...offered(deps) }), signedIn);
}

export async function signOut(from: FormVisit): Promise<Reply> {
  const who = await formPerson(from, "/account");
  if (!("token" in who)) return who;
  const refused = await from.deps.people.signOut(who);
  if (refused) return message("You are still signed in", refused);
  return elsewhere("/sign-in", [cookie(from.origin, "")]);
}

export async function showSignUp({ deps }: Visit): Promise<Reply> {
  if (deps.people.signUpOpen) return shown(signUpPage({ email: "" }));
  return message("No sign-up here", new PageRefusal("Accounts of this service are made by its operator.", "notFound"));
}

export async function signUp({ deps, form, origin }: FormVisit): Promise<Reply> {
  const email = form("email");
  const signedIn = await deps.people.signUp({ email, password: form("password"), network: origin.network });
  if (!(signedIn instanceof PageRefusal)) return elsewhere("/account", signedInCookies(origin, signedIn));
  if (signedIn.kind === "notFound") return message("No sign-up here", signedIn);
  return again(signUpPage({ email, problem: signedIn.text }), signedIn);
}

export async function showWelcome({ deps, request }: Visit): Promise<Reply> {
  const token = new URL(request.url).searchParams.get("token") ?? "";
  const link = await deps.people.link(token);
  if (link instanceof PageRefusal) return message("This link does not work", link);
  return shown(welcomePage({ token, ...link }));
}

export async function welcome({ deps, form, origin }: FormVisit): Promise<Reply> {
  const [token, email, keys] = [form("token"), form("email"), form("keys")];
  const typed = { token, email, password: form("password"), keys, network: origin.network };
  const signedIn = await deps.people.redeem(typed);
  if (!(signedIn instanceof PageRefusal)) {
    if (keys === "revoke") await deps.keys.refresh();
    return elsewhere("/account", signedInCookies(origin, signedIn));
  }
  const link = await deps.people.link(token);
  if (link instanceof PageRefusal) return message("This link does not work", link);
  const problem = signedIn.text;
  return again(welcomePage({ token, ...link, ...(link.operator ? { email } : {}), problem }), signedIn);
}

interface SignInPage {
  readonly email: string;
  readonly next: string;
  readonly problem?: string;
  readonly signUpOpen: boolean;
  readonly provider?: string;
}

export function signInPage({ email, next, problem, signUpOpen, provider }: SignInPage): string {
  return layout({
    heading: "Sign in",
    problem,
    content: html`<form class="panel" method="post" action="/sign-in">
${hidden("next", next)}
${emailField(email, problem)}
${ownPassword({ name: "password", label: "Password", problem })}
<button class="primary" type="submit">Sign in</button>
</form>
${provider === undefined ? undefined : html`<p class="below"><a href="/sign-in/oidc?next=${encodeURIComponent(next)}">Sign in with ${provider}</a></p>`}
${signUpOpen ? html`<p class="below">No account yet? <a href="/sign-up">Sign up</a></p>` : undefined}`,
  });
}

export function signUpPage({ email, problem }: { readonly email: string; readonly problem?: string }): string {
  return layout({
    heading: "Sign up",
    lead: html`<p>An account holds your keys, your credit and what you have used.</p>`,
    problem,
    content: html`<form class="panel" method="post" action="/sign-up">
${emailField(email, problem)}
${newPassword("Password", problem)}
<button class="primary" type="submit">Create the account</button>
</form>
<p class="below">Have an account? <a href="/sign-in">Sign in</a></p>`,
  });
}

interface WelcomePage extends LinkFor {
  readonly token: string;
  readonly problem?: string;
}

export function welcomePage({ token, email, operator, keys, problem }: WelcomePage): string {
  return layout({
    heading: operator ? "Create the operator’s account of this service" : "Choose your password",
    lead: operator
      ? html`<p>The operator’s account is for the person who runs this service. This link works once.</p>`
      : html`<p>You sign in with it from now on. This link works once.</p>`,
    problem,
    content: html`<form class="panel" method="post" action="/welcome">
${hidden("token", token)}
${emailField(email, problem, operator ? "chosen" : "fixed")}
${newPassword("Password", problem)}
${keysChoice(keys)}
<button class="primary" type="submit">${operator ? "Create the operator’s account" : "Save and sign in"}</button>
</form>`,
  });
}

/** `fixed`: the address belongs to the link and cannot be changed. */
function emailField(email: string, problem: string | undefined, address: "chosen" | "fixed" = "chosen"): Html {
  const fixed = address === "fixed";
  return field({
    name: "email",
    label: "E-mail address",
    type: "email",
    value: email,
    problem,
    ...(fixed ? { hint: "The link was made for this address." } : {}),
    // Password managers save the password with the field that is marked as the user name.
    attributes: {
      autocomplete: "username",
      autocapitalize: "none",
      spellcheck: "false",
      ...(fixed ? { readonly: true } : {}),
    },
  });
}
