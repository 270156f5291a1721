/** `/account`: keys, credit, spend limit, usage, password of the person who is signed in. */

import type { UsageDay } from "../../charge/store/records.ts";
import type { Form } from "../../http/body-rules.ts";
import type { Reply } from "../../http/reply.ts";
import { LIMITS } from "../../limits.ts";
import { dayOf, dayText, monthOf, monthOfDay, monthStart } from "../../std/calendar.ts";
import { nanosOf, usdText } from "../../std/usd.ts";
import { StoreDown } from "../../store/store.ts";
import { KEY_REFUSALS } from "../device-login.ts";
import { keyDigest, keyNameProblem, keyPrefix, keyPublicId, makeKey, publicIdOf } from "../key.ts";
import { PageRefusal, type Person, unavailable } from "../people.ts";
import { type AccountPage, accountPage } from "../views/account.ts";
import type { UsageRow } from "../views/usage.ts";
import { PAGE } from "./errors.ts";
import {
  elsewhere,
  type FormVisit,
  formPerson,
  message,
  type PagesDeps,
  person,
  shown,
  type Visit,
  viewer,
} from "./page.ts";

/** What the page says besides the account as it is. */
type Said = Partial<Pick<AccountPage, "notice" | "problem" | "newKey">>;

/** Usage of this many days, today included. */
const DAYS = 30;

export async function showAccount(from: Visit): Promise<Reply> {
  const who = await person(from, "/account");
  if (!("token" in who)) return who;
  const done = new URL(from.request.url).searchParams.get("done") ?? "";
  const notice = Object.hasOwn(NOTICES, done) ? NOTICES[done as keyof typeof NOTICES] : undefined;
  return await account(from.deps, who, notice === undefined ? {} : { notice });
}

/** The notice of a change, on the page that the browser is redirected to. */
const NOTICES = {
  limit: "The spend limit is changed.",
  revoked: "The key is revoked. It ends within a second.",
  password: "The password is changed. Other sign-ins have ended.",
  passwordAndKeys:
    "The password is changed. Other sign-ins have ended, and all keys are revoked: they end within a second.",
} as const;

/** What a form of the page changes: where to go then, what to show, or why it is not done. */
type Change = (
  deps: PagesDeps,
  person: Person,
  form: Form,
  network: string,
) => Promise<keyof typeof NOTICES | Said | PageRefusal>;

export function changeAccount(change: Change): (from: FormVisit) => Promise<Reply> {
  return async (from) => {
    const who = await formPerson(from, "/account");
    if (!("token" in who)) return who;
    const outcome = await change(from.deps, who, from.form, from.network);
    if (typeof outcome === "string") return elsewhere(`/account?done=${outcome}`);
    if (!(outcome instanceof PageRefusal)) return await account(from.deps, who, outcome);
    return await account(from.deps, who, { problem: outcome.text }, PAGE[outcome.kind].status);
  };
}

/** The new key is shown once, on the page that answers the form. */
export const createKey: Change = async ({ store, clock, people, keys }, who, form, network) => {
  const { accountId } = who;
  const name = form("name").trim();
  const wrong = keyNameProblem(name);
  if (wrong) return new PageRefusal(`The key is not made: ${wrong}.`);
  const unproved = who.stale ? await people.prove(who, { current: form("confirm"), network }) : undefined;
  if (unproved) return unproved;
  const key = makeKey();
  const record = { publicId: keyPublicId(key) ?? "", sha256: keyDigest(key), accountId, name };
  const added = await store.accounts.keyAdd({ ...record, createdAt: Math.floor(clock.unixMs() / 1000) });
  if (added === "added") {
    keys.made(key);
    return { newKey: { key, name } };
  }
  if (typeof added === "string" && added !== "id_taken") return new PageRefusal(KEY_REFUSALS[added]);
  return unavailable();
};

export const revokeKey: Change = async (deps, { accountId }, form) => {
  const publicId = publicIdOf(form("prefix")) ?? "";
  const at = Math.floor(deps.clock.unixMs() / 1000);
  const revoked = await deps.store.accounts.keyRevoke({ publicId, accountId, at });
  if (revoked instanceof StoreDown) return unavailable();
  if (revoked === "unknown") return new PageRefusal("The account has no such key.");
  await deps.keys.refresh();
  return "revoked";
};

export const changeLimit: Change = async ({ store }, { accountId }, form) => {
  const typed = form("usd").trim().replace(/^\$/, "");
  const limit = typed === "" ? undefined : nanosOf(typed);
  if (typed !== "" && (limit === undefined || limit < 0n)) {
    return new PageRefusal("The spend limit is no amount of dollars: write it like 12.50, or leave it empty for none.");
  }
  const changed = await store.accounts.spendLimit({ accountId, limit });
  return changed instanceof StoreDown ? unavailable() : "limit";
};

export const changePassword: Change = async ({ people, keys }, who, form, network) => {
  const typed = { current: form("current"), password: form("password"), keys: form("keys"), network };
  const changed = await people.changePassword(who, typed);
  if (changed instanceof PageRefusal) return changed;
  if (changed === "kept") return "password";
  await keys.refresh();
  return "passwordAndKeys";
};

async function account(deps: PagesDeps, who: Person, said: Said, status = 200): Promise<Reply> {
  const { store, clock } = deps;
  const now = Math.floor(clock.unixMs() / 1000);
  const { accountId } = who;
  const month = monthOf(now);
  const fromDay = dayOf(now) - DAYS + 1;
  // Stores the times of use that are still in memory, which the page shows.
  await deps.keys.flush();
  const [found, keys, days] = await Promise.all([
    store.accounts.accountById(accountId),
    store.accounts.keysOf(accountId),
    // A month may have 31 days.
    store.charges.usageDays({ accountId, fromDay: Math.min(fromDay, dayOf(monthStart(month))) }),
  ]);
  if (!found || found instanceof StoreDown || keys instanceof StoreDown || days instanceof StoreDown) {
    return message("Sorry", unavailable());
  }
  const balance = found.credits - found.settled;
  // The account itself knows the month of its last settlement, which a clock that jumped may have put into another one.
  const spent = days.filter(({ day }) => monthOfDay(day) === month).reduce((sum, { cost }) => sum + cost, 0n);
  const html = accountPage({
    viewer: viewer(who),
    askPassword: who.stale && said.newKey === undefined,
    ...said,
    credit: { balance, held: found.held, available: balance - found.held, paymentMethod: found.paymentMethod },
    month: {
      name: MONTH.format(clock.unixMs()),
      settled: spent,
      limit: found.spendLimit,
    },
    limitText: found.spendLimit === undefined ? "" : usdText(found.spendLimit).replace(/\.?0+$/, ""),
    keys: keys.map(({ publicId, name, createdAt, lastUsedAt, revokedAt }) => {
      return { prefix: keyPrefix(publicId), name, createdAt, lastUsedAt, revokedAt };
    }),
    usage: days.filter(({ day }) => day >= fromDay).map((day) => usageRow(day, deps.isLanguage)),
    today: dayText(dayOf(now)),
    passwordCharsMin: LIMITS.passwordCharsMin,
    provider: deps.oidc?.name,
  });
  return shown(html, status);
}

function usageRow(
  { day, item, charges, promptTokens, cachedTokens, completionTokens, cost }: UsageDay,
  isLanguage: PagesDeps["isLanguage"],
): UsageRow {
  return {
    day: dayText(day),
    kind: isLanguage(item) ? "language" : "robot",
    model: item,
    runs: charges,
    tokensIn: promptTokens,
    tokensCached: cachedTokens,
    out: completionTokens,
    cost,
  };
}

const MONTH = new Intl.DateTimeFormat("en", { month: "long", year: "numeric", timeZone: "UTC" });
