/** The frame of all pages for people: headers, cookies, the signed-in person, and the proof that a form comes from our own page. */
import type { ChargeStore } from "../../charge/store/charges.ts";
import { type Form, form, NO_BODY } from "../../http/body-rules.ts";
import type { Origin } from "../../http/origin.ts";
import { type Arrival, NO_KEY, type Outcome, type Reply, type Route, route } from "../../http/route.ts";
import type { Surface } from "../../http/surface.ts";
import { LIMITS } from "../../limits.ts";
import type { Failure } from "../../std/failure.ts";
import type { SeenClock } from "../../std/seen-clock.ts";
import type { ProofAsked } from "../../web/field.ts";
import { messagePage, type Viewer, WEB_POLICY } from "../../web/layout.ts";
import type { DeviceLogins } from "../device-login.ts";
import { PAGE, PAGE_ANSWERS, PageRefusal, unavailable } from "../errors.ts";
import type { Identities } from "../identities.ts";
import type { Keys } from "../keys.ts";
import type { OidcProvider } from "../oidc.ts";
import type { People, Person, SignedIn } from "../people.ts";
import { formToken, sameText } from "../secret.ts";
import type { AccountStore } from "../store/accounts.ts";

export interface PagesDeps {
  readonly clock: SeenClock;
  readonly store: {
    readonly accounts: Pick<AccountStore, "accountById" | "keyAdd" | "keyRevoke" | "keysOf" | "spendLimit">;
    readonly charges: Pick<ChargeStore, "usageDays">;
  };
  readonly keys: Pick<Keys, "flush" | "prove" | "refresh">;
  readonly people: People;
  readonly identities: Identities;
  readonly deviceLogins: Pick<DeviceLogins, "find" | "decide">;
  /** Tells the usage of a language model from that of a robot model. */
  readonly isLanguage: (item: string) => boolean;
  /** The provider with which people sign in. */
  readonly oidc?: Pick<OidcProvider, "name" | "begin" | "finish">;
}

interface SignedInDeps {
  readonly people: People;
}

/** One visit of a page. */
export interface Visit<Deps extends SignedInDeps = PagesDeps> extends Pick<Arrival, "request" | "params" | "origin"> {
  readonly deps: Deps;
}

/** A visit that brings a form. */
export interface FormVisit<Deps extends SignedInDeps = PagesDeps> extends Visit<Deps> {
  readonly form: Form;
}

/** Declares a product's pages for people. They are not in the document of the API. */
export function pageRoutes<Deps extends SignedInDeps>(deps: Deps) {
  const visit = ({ request, params, origin }: Arrival): Visit<Deps> => ({ deps, request, params, origin });
  const declared = { name: "page", key: NO_KEY } as const;
  const read =
    (method: "GET" | "HEAD") =>
    (path: string, show: (from: Visit<Deps>) => Promise<Outcome>): Route =>
      route({ ...declared, method, path, body: NO_BODY, handle: (call) => show(visit(call)) });
  const post = (path: string, take: (from: FormVisit<Deps>) => Promise<Reply>): Route =>
    route({
      ...declared,
      method: "POST",
      path,
      body: form(LIMITS.formBytesMax),
      handle: async (call) => (call.origin.isForeign ? foreign() : await take({ ...visit(call), form: call.body })),
    });
  const surface = (routes: readonly Route[]): Surface => ({
    tag: "Pages",
    answers: PAGE_ANSWERS,
    failureForm: { table: PAGE, write: unreadable },
    routes,
  });
  return { get: read("GET"), head: read("HEAD"), post, surface };
}

const HEADERS = {
  "content-type": "text/html; charset=utf-8",
  "content-security-policy": WEB_POLICY,
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  // With `no-referrer` browsers would send `Origin: null` with a form.
  "referrer-policy": "same-origin",
} as const;

export function shown(html: string, status = 200, headers: Record<string, string> = {}): Reply {
  return { status, body: html, headers: { ...HEADERS, ...headers } };
}

export function elsewhere(location: string, cookies: readonly string[] = []): Reply {
  return { status: 303, body: "", headers: { ...HEADERS, location }, cookies };
}

/** A page with the reason of a refusal. */
export function message(heading: string, refusal: PageRefusal): Reply {
  const link = { href: "/account", text: "To your account" };
  return again(messagePage({ heading, text: refusal.text, link }), refusal);
}

/** The page of a form again, with its problem. */
export function again(html: string, { kind, retryAfterSeconds }: PageRefusal): Reply {
  return shown(
    html,
    PAGE[kind].status,
    retryAfterSeconds === undefined ? {} : { "retry-after": String(retryAfterSeconds) },
  );
}

/** Keeps an address only if it is one of our pages: an open redirect would lead people to another site after their sign-in. */
export function nextOf(text: string): string {
  const page = /^\/(account(\/runs((\/[A-Za-z0-9][\w.-]*){2})?)?|device)(\?[\w=&%+.-]*)?$/;
  return page.test(text) ? text : "/account";
}

/** `__Host-` binds a cookie to this host, and browsers accept it with `Secure` alone. */
function cookieName({ isSecure }: Origin, name: string): string {
  const own = name === "" ? "tendon" : `tendon-${name}`;
  return isSecure ? `__Host-${own}` : own;
}

/** The cookie by which the tries of a browser are counted apart from those of strangers. */
export const KNOWN_COOKIE = "known";

/** It outlasts the sign-in. */
export function knownCookie(origin: Origin, known: string): string {
  return setCookie(origin, KNOWN_COOKIE, known, LIMITS.knownBrowserSeconds);
}

/** The cookies of a browser that has signed in with a password. */
export function signedInCookies(origin: Origin, { token, known }: SignedIn): readonly string[] {
  return [cookie(origin, token), knownCookie(origin, known)];
}

/** The cookie that signs the browser in, or out with an empty token. */
export function cookie(origin: Origin, token: string): string {
  return setCookie(origin, "", token, token === "" ? 0 : LIMITS.signInSeconds);
}

/** `name` tells cookies apart; that of the sign-in is empty. */
export function setCookie(origin: Origin, name: string, value: string, seconds: number): string {
  const secure = origin.isSecure ? "; Secure" : "";
  return `${cookieName(origin, name)}=${value}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Lax${secure}`;
}

export function cookieValue(
  { request, origin }: Pick<Arrival, "request" | "origin">,
  name: string,
): string | undefined {
  const begin = `${cookieName(origin, name)}=`;
  const cookies = (request.headers.get("cookie") ?? "").split(/;\s*/);
  return cookies.find((one) => one.startsWith(begin))?.slice(begin.length);
}

/** The signed-in person; other browsers are redirected to the sign-in. */
export async function person(from: Visit<SignedInDeps>, next: string): Promise<Person | Reply> {
  const found = await from.deps.people.person(cookieValue(from, ""));
  if (found instanceof PageRefusal) return message("Sorry", found);
  return found ?? elsewhere(`/sign-in?next=${encodeURIComponent(next)}`);
}

/** What the person has to prove anew before a key is given out or the ways to sign in change; `next`: the page that asks. */
export function proofAsked({ oidc }: PagesDeps, who: Person, next: string): ProofAsked | undefined {
  if (!who.stale) return undefined;
  const href = `/sign-in/oidc?purpose=again&next=${encodeURIComponent(next)}`;
  return { password: who.hasPassword, provider: who.hasIdentity && oidc ? { name: oidc.name, href } : undefined };
}

export function viewer({ email, token }: Person): Viewer {
  return { email, csrf: formToken(token) };
}

/** The signed-in person, if the form is the one that our page gave to this person. */
export async function formPerson(from: FormVisit<SignedInDeps>, next: string): Promise<Person | Reply> {
  const who = await person(from, next);
  if (!("token" in who)) return who;
  return sameText(from.form("csrf"), formToken(who.token)) ? who : foreign();
}

/** The answer to a form that another site sent, or an old page. */
function foreign(): Reply {
  const text =
    "This form did not come from a page of this service, or the page is old. Open the page again and send it once more.";
  return message("Not done", new PageRefusal(text, "forbidden"));
}

/** The page for a form that was refused before it was read. */
function unreadable({ row }: Failure): Reply {
  if (row === PAGE.unavailable) return message("Not done", unavailable());
  const text = row === PAGE.tooLarge ? "The form is too large." : "The form cannot be read.";
  return message("Not done", new PageRefusal(text, row === PAGE.tooLarge ? "tooLarge" : "refused"));
}
