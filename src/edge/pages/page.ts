/** What all pages for people share: headers, cookies, who is signed in, and that a form comes from our own page. */
import { type Person, Refusal } from "../../account/people.ts";
import { formToken, sameText } from "../../account/secret.ts";
import { Failure, PAGE } from "../../error.ts";
import { LIMITS } from "../../limits.ts";
import type { Viewer } from "../../web/layout.ts";
import { WEB_POLICY } from "../../web/layout.ts";
import { messagePage } from "../../web/message.ts";
import type { Reply } from "../answer.ts";
import { type Form, readForm } from "../form.ts";
import { addressOf, isForeign, isSecure } from "../origin.ts";
import type { Service } from "../service.ts";

/** One visit of a page. */
export interface Visit {
  readonly service: Service;
  readonly request: Request;
  readonly address: string;
}

export function visit(service: Service, request: Request, peer: string | undefined): Visit {
  return { service, request, address: addressOf(request, peer) };
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
export function message(heading: string, refusal: Refusal): Reply {
  const link = { href: "/account", text: "To your account" };
  return shown(messagePage({ heading, text: refusal.text, link }), PAGE[refusal.kind]);
}

/** The page of a form again, with what was wrong. */
export function again(html: string, { kind }: Refusal): Reply {
  return shown(html, PAGE[kind]);
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
  if (found instanceof Refusal) return message("Sorry", found);
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
  return shown(
    messagePage({ heading: "Not done", text, link: { href: "/account", text: "To your account" } }),
    PAGE.forbidden,
  );
}

function unreadable(failure: Failure): Reply {
  const text = failure.code === "request_too_large" ? "The form is too large." : "The form cannot be read.";
  const status = failure.code === "request_too_large" ? PAGE.tooLarge : PAGE.refused;
  return shown(messagePage({ heading: "Not done", text }), status);
}
