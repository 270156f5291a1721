/** Sign-in with the operator's OpenID provider: the browser is sent there, and comes back with a proof of who the person is. */
import type { Origin } from "../../http/origin.ts";
import type { Reply } from "../../http/route.ts";
import { messagePage } from "../../web/layout.ts";
import { PageRefusal } from "../errors.ts";
import type { Transaction } from "../oidc.ts";
import { formToken, sameText } from "../secret.ts";
import {
  cookie,
  cookieValue,
  elsewhere,
  type FormVisit,
  formPerson,
  message,
  nextOf,
  person,
  setCookie,
  shown,
  type Visit,
} from "./page.ts";

/** The provider sends the browser here; the operator registers this address there. */
export const OIDC_BACK = "/sign-in/oidc/back";

/** Time to type a password and a second factor at the provider. */
const TRANSACTION_SECONDS = 15 * 60;
const COOKIE = "oidc";

/** `connect` is to connect the signed-in account with the identity, `again` to prove anew who the signed-in person is. */
const PURPOSES = ["enter", "connect", "again"] as const;

/** Why the browser was sent to the provider. */
interface Errand {
  readonly next: string;
  readonly purpose: (typeof PURPOSES)[number];
  /** The token of the form that asked to connect, so that no other site makes this browser do so. */
  readonly csrf: string;
}

/** The content of the cookie until the person comes back. */
interface Kept extends Transaction, Errand {}

const HEADING = "That sign-in did not work";
const NONE = new PageRefusal("This service has no sign-in of that kind.", "notFound");
const STALE = new PageRefusal(
  "You proved more than 10 minutes ago who you are. Connect the account once more.",
  "forbidden",
);
const LOST = new PageRefusal(
  "This browser did not begin a sign-in, or began it more than 15 minutes ago. Sign in again; cookies must be allowed.",
);

/** `GET /sign-in/oidc?next=…&purpose=…` */
export async function startOidc(from: Visit): Promise<Reply> {
  const { searchParams } = new URL(from.request.url);
  const purpose = searchParams.get("purpose") === "again" ? "again" : "enter";
  const begun = await begin(from, { next: nextOf(searchParams.get("next") ?? ""), purpose, csrf: "" });
  return begun instanceof PageRefusal ? message(HEADING, begun) : elsewhere(begun.url, [begun.cookie]);
}

/** `POST /account/identities`: a connected identity opens the account from then on, which takes the proof that making a key does. */
export async function connectIdentity(from: FormVisit): Promise<Reply> {
  const { deps, form, origin } = from;
  const who = await formPerson(from, "/account");
  if (!("token" in who)) return who;
  const unproved = await deps.people.prove(who, { current: form("confirm"), network: origin.network });
  const errand: Errand = { next: "/account?done=connected", purpose: "connect", csrf: form("csrf") };
  const begun = unproved ?? (await begin(from, errand));
  if (begun instanceof PageRefusal) return message(HEADING, begun);
  // The policy lets forms lead to this service alone, and browsers apply it to redirects. So a page leads on.
  const link = { href: begun.url, text: "Continue" };
  const page = messagePage({ heading: "One moment", text: "Your browser goes on to the provider.", link });
  return { ...shown(page, 200, { refresh: `0; url=${begun.url}` }), cookies: [begun.cookie] };
}

/** The provider's address for this browser, and the cookie that it keeps meanwhile. */
async function begin({ deps, origin }: Visit, errand: Errand): Promise<{ url: string; cookie: string } | PageRefusal> {
  const { oidc, people } = deps;
  if (!oidc) return NONE;
  const refused = await people.triedProvider("provider", origin.network);
  if (refused) return refused;
  const begun = await oidc.begin(backAddress(origin), errand.purpose === "again");
  if (begun instanceof PageRefusal) return begun;
  const kept: Kept = { ...begun.transaction, ...errand };
  const value = Buffer.from(JSON.stringify(kept)).toString("base64url");
  return { url: begun.url, cookie: setCookie(origin, COOKIE, value, TRANSACTION_SECONDS) };
}

/** `GET /sign-in/oidc/back`. A repeat of the address signs nobody in: the provider takes its code once. */
export async function finishOidc(from: Visit): Promise<Reply> {
  const { deps, request, origin } = from;
  const { oidc, people, identities } = deps;
  if (!oidc) return message(HEADING, NONE);
  const kept = keptBy(from);
  if (!kept) return message(HEADING, LOST);
  const { purpose, next } = kept;
  // The cookie may be forged, and the answer costs the provider a request.
  const refused = await people.triedProvider("provider back", origin.network);
  if (refused) return message(HEADING, refused);
  const who = purpose === "enter" ? undefined : await person(from, next);
  if (who && !("token" in who)) return who;
  if (who && purpose === "connect") {
    if (!sameText(kept.csrf, formToken(who.token))) return message(HEADING, LOST);
    if (who.stale) return message(HEADING, STALE);
  }
  // The address to which the browser came back, as it was registered: a proxy in front may have changed it.
  const address = new URL(backAddress(origin) + new URL(request.url).search);
  const identity = await oidc.finish(address, kept);
  if (identity instanceof PageRefusal) return message(HEADING, identity);
  if (!who) {
    const token = await identities.enter(identity);
    return token instanceof PageRefusal ? message(HEADING, token) : elsewhere(next, [cookie(origin, token)]);
  }
  const failed =
    purpose === "connect" ? await identities.connect(who, identity) : await identities.prove(who, identity);
  return failed ? message(HEADING, failed) : elsewhere(next);
}

function backAddress(origin: Origin): string {
  return origin.base + OIDC_BACK;
}

/** The cookie needs no signature: a program that writes this browser's cookies acts as its person anyway. */
function keptBy(from: Visit): Kept | undefined {
  const value = cookieValue(from, COOKIE);
  if (value === undefined) return undefined;
  try {
    const { state, nonce, verifier, next, purpose, csrf } = JSON.parse(Buffer.from(value, "base64url").toString());
    const texts = [state, nonce, verifier, next, csrf].every((text) => typeof text === "string");
    if (!texts || !PURPOSES.includes(purpose)) return undefined;
    return { state, nonce, verifier, next: nextOf(next), purpose, csrf };
  } catch {
    return undefined;
  }
}
