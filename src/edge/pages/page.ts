/** What all pages for people share: headers, cookies, who is signed in, and that a form comes from our own page. */
import { PageRefusal, type Person, unavailable } from "../../account/people.ts";
import { formToken, sameText } from "../../account/secret.ts";
import { Failure } from "../../error/core.ts";
import { PAGE } from "../../error/page.ts";
import { LIMITS } from "../../limits.ts";
import type { Viewer } from "../../web/layout.ts";
import { WEB_POLICY } from "../../web/layout.ts";
import { messagePage } from "../../web/message.ts";
import type { Reply } from "../http/answer.ts";
import { type Form, readForm } from "../http/form.ts";
import { addressOf, isForeign, isSecure, networkOf } from "../http/origin.ts";
import type { Service } from "../service.ts";

/** One visit of a page. */
export interface Visit {
  readonly service: Service;
  readonly request: Request;
  readonly address: string;
  /** What tries are counted by. */
  readonly network: string;
}

export function visit(service: Service, request: Request, peer: string | undefined): Visit {
  const address = addressOf(request, peer);
  return { service, request, address, network: networkOf(address) };
}

const HEADERS = {
  "content-type": "text/html; charset=utf-8",
  "content-security-policy": WEB_POLICY,
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  // Not `no-referrer`: with it browsers send `Origin: null` with a form.
  "referrer-policy": "same-origin",
} as const;

export function shown(html: string, status: number = PAGE.shown, headers: Record<string, string> = {}): Reply {
  return { status, body: html, headers: { ...HEADERS, ...headers } };
}

export function elsewhere(location: string, headers: Record<string, string> = {}): Reply {
  return { status: PAGE.elsewhere, body: "", headers: { ...HEADERS, location, ...headers } };
}

/** A page that says why something was not done. */
export function message(heading: string, refusal: PageRefusal): Reply {
  const link = { href: "/account", text: "To your account" };
  return again(messagePage({ heading, text: refusal.text, link }), refusal);
}

/** The page of a form again, with what was wrong. */
export function again(html: string, { kind, retryAfterSeconds }: PageRefusal): Reply {
  return shown(html, PAGE[kind], retryAfterSeconds === undefined ? {} : { "retry-after": String(retryAfterSeconds) });
}

/** `__Host-` binds a cookie to this host, and browsers accept it with `Secure` alone. */
function cookieName(request: Request): string {
  return isSecure(request) ? "__Host-tendon" : "tendon";
}

/** Signs the browser in, or out with an empty token. */
export function cookie(request: Request, token: string): Record<string, string> {
  const age = token === "" ? 0 : LIMITS.signInSeconds;
  const secure = isSecure(request) ? "; Secure" : "";
  const value = `${cookieName(request)}=${token}; Path=/; Max-Age=${age}; HttpOnly; SameSite=Lax${secure}`;
  return { "set-cookie": value };
}

/** Who is signed in; a browser without a sign-in is sent to make one. */
export async function person({ service, request }: Visit, next: string): Promise<Person | Reply> {
  const name = `${cookieName(request)}=`;
  const cookies = (request.headers.get("cookie") ?? "").split(/;\s*/);
  const token = cookies.find((one) => one.startsWith(name))?.slice(name.length);
  const found = await service.people.person(token);
  if (found instanceof PageRefusal) return message("Sorry", found);
  return found ?? elsewhere(`/sign-in?next=${encodeURIComponent(next)}`);
}

export function viewer({ email, token }: Person): Viewer {
  return { email, csrf: formToken(token) };
}

/** The form of a page that needs no sign-in. */
export async function openForm({ service, request }: Visit): Promise<Form | Reply> {
  if (isForeign(request)) return foreign();
  const form = await readForm(service, request);
  return form instanceof Failure ? unreadable(form) : form;
}

/** Who is signed in, and the form that our page gave to this person. */
export async function personForm(from: Visit, next: string): Promise<{ person: Person; form: Form } | Reply> {
  const who = await person(from, next);
  if (!("token" in who)) return who;
  const form = await openForm(from);
  if (typeof form !== "function") return form;
  return sameText(form("csrf"), formToken(who.token)) ? { person: who, form } : foreign();
}

function foreign(): Reply {
  const text =
    "This form did not come from a page of this service, or the page is old. Open the page again and send it once more.";
  return message("Not done", new PageRefusal(text, "forbidden"));
}

function unreadable({ code }: Failure): Reply {
  if (code === "engine_unavailable") return message("Not done", unavailable());
  const tooLarge = code === "request_too_large";
  const text = tooLarge ? "The form is too large." : "The form cannot be read.";
  return message("Not done", new PageRefusal(text, tooLarge ? "tooLarge" : "refused"));
}
