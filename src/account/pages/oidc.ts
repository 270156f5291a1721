/** Sign-in with the operator's OpenID provider: the browser is sent there, and comes back with a proof of who the person is. */
import type { Origin } from "../../http/origin.ts";
import type { Reply } from "../../http/route.ts";
import { PageRefusal } from "../errors.ts";
import type { Transaction } from "../oidc.ts";
import type { Person } from "../people.ts";
import { cookie, cookieValue, elsewhere, message, nextOf, person, setCookie, type Visit } from "./page.ts";

/** The provider sends the browser here; the operator registers this address there. */
export const OIDC_BACK = "/sign-in/oidc/back";

/** Time to type a password and a second factor at the provider. */
const TRANSACTION_SECONDS = 15 * 60;
const COOKIE = "oidc";

/** `connect` is to connect the signed-in account with the identity. */
const PURPOSES = ["enter", "connect"] as const;
type Purpose = (typeof PURPOSES)[number];

/** The content of the cookie until the person comes back. */
interface Kept extends Transaction {
  readonly next: string;
  readonly purpose: Purpose;
}

const HEADING = "You are not signed in";
const NONE = new PageRefusal("This service has no sign-in of that kind.", "notFound");
const STALE = new PageRefusal(
  "You signed in more than 10 minutes ago. Sign out, sign in again, and then connect the account.",
  "forbidden",
);
const LOST = new PageRefusal(
  "This browser did not begin a sign-in, or began it more than 15 minutes ago. Sign in again; cookies must be allowed.",
);

/** `GET /sign-in/oidc?next=…&purpose=…` */
export async function startOidc(from: Visit): Promise<Reply> {
  const { deps, request, origin } = from;
  const { oidc, people } = deps;
  if (!oidc) return message(HEADING, NONE);
  const refused = await people.triedProvider("provider", origin.network);
  if (refused) return message(HEADING, refused);
  const { searchParams } = new URL(request.url);
  const purpose = PURPOSES.find((one) => one === searchParams.get("purpose")) ?? "enter";
  const who = purpose === "connect" ? await connecting(from, "/account") : undefined;
  if (who && !("token" in who)) return who;
  const begun = await oidc.begin(backAddress(origin));
  if (begun instanceof PageRefusal) return message(HEADING, begun);
  const kept: Kept = { ...begun.transaction, next: nextOf(searchParams.get("next") ?? ""), purpose };
  const value = Buffer.from(JSON.stringify(kept)).toString("base64url");
  return elsewhere(begun.url, [setCookie(origin, COOKIE, value, TRANSACTION_SECONDS)]);
}

/** `GET /sign-in/oidc/back`. A repeat of the address signs nobody in: the provider takes its code once. */
export async function finishOidc(from: Visit): Promise<Reply> {
  const { deps, request, origin } = from;
  const { oidc, people } = deps;
  if (!oidc) return message(HEADING, NONE);
  const kept = keptBy(from);
  if (!kept) return message(HEADING, LOST);
  // The cookie may be forged, and the answer costs the provider a request.
  const refused = await people.triedProvider("provider back", origin.network);
  if (refused) return message(HEADING, refused);
  const who = kept.purpose === "connect" ? await connecting(from, kept.next) : undefined;
  if (who && !("token" in who)) return who;
  // The address to which the browser came back, as it was registered: a proxy in front may have changed it.
  const address = new URL(backAddress(origin) + new URL(request.url).search);
  const identity = await oidc.finish(address, kept);
  if (identity instanceof PageRefusal) return message(HEADING, identity);
  const token = await people.enter(identity, who);
  if (token instanceof PageRefusal) return message(HEADING, token);
  return elsewhere(kept.next, [cookie(origin, token)]);
}

/** A connected identity opens the account from then on: that takes the proof that making a key does. */
async function connecting(from: Visit, next: string): Promise<Person | Reply> {
  const who = await person(from, next);
  if ("token" in who && who.stale) return message("Not connected", STALE);
  return who;
}

function backAddress(origin: Origin): string {
  return origin.base + OIDC_BACK;
}

/** The cookie needs no signature: a program that writes this browser's cookies acts as its person anyway. */
function keptBy(from: Visit): Kept | undefined {
  const value = cookieValue(from, COOKIE);
  if (value === undefined) return undefined;
  try {
    const { state, nonce, verifier, next, purpose } = JSON.parse(Buffer.from(value, "base64url").toString());
    const texts = [state, nonce, verifier, next].every((text) => typeof text === "string");
    if (!texts || !PURPOSES.includes(purpose)) return undefined;
    return { state, nonce, verifier, next: nextOf(next), purpose };
  } catch {
    return undefined;
  }
}
