/** `/account`: credit, spend limit, keys, usage, password and identities of the person who is signed in. */
import type { Reply } from "../../http/route.ts";
import { dayOf, monthOf, monthOfDay, monthStart } from "../../std/calendar.ts";
import { unixSeconds } from "../../std/clock.ts";
import { nanosOf, usdText } from "../../std/usd.ts";
import { StoreDown } from "../../store/store.ts";
import { field, hidden, keysChoice, newPassword, ownPassword } from "../../web/field.ts";
import { layout, section, type Viewer } from "../../web/layout.ts";
import { type Html, html } from "../../web/markup.ts";
import { exactMoneyText, money } from "../../web/money.ts";
import { PAGE, PageRefusal, unavailable } from "../errors.ts";
import type { Person } from "../people.ts";
import type { Account } from "../store/accounts.ts";
import type { KeyRecord } from "../store/keys.ts";
import { type Change, NOTICES, type Said } from "./change.ts";
import { DAYS, usageSection } from "./chart.ts";
import { type IdentitiesShown, identitiesSection } from "./identities.ts";
import { keysSection, newKeySection } from "./keys.ts";
import {
  elsewhere,
  type FormVisit,
  formPerson,
  knownCookie,
  message,
  type PagesDeps,
  person,
  proofAsked,
  shown,
  type Visit,
  viewer,
} from "./page.ts";
import type { UsageRow } from "./usage.ts";

export async function showAccount(from: Visit): Promise<Reply> {
  const who = await person(from, "/account");
  if (!("token" in who)) return who;
  const done = new URL(from.request.url).searchParams.get("done") ?? "";
  const notice = Object.hasOwn(NOTICES, done) ? NOTICES[done as keyof typeof NOTICES] : undefined;
  return await account(from.deps, who, notice === undefined ? {} : { notice });
}

export function changeAccount(change: Change): (from: FormVisit) => Promise<Reply> {
  return async (from) => {
    const who = await formPerson(from, "/account");
    if (!("token" in who)) return who;
    const outcome = await change(from.deps, who, from.form, from.origin.network);
    if (typeof outcome === "string") return elsewhere(`/account?done=${outcome}`);
    if ("known" in outcome) {
      return elsewhere(`/account?done=${outcome.notice}`, [knownCookie(from.origin, outcome.known)]);
    }
    if (!(outcome instanceof PageRefusal)) return await account(from.deps, who, outcome);
    return await account(from.deps, who, { problem: outcome.text }, PAGE[outcome.kind].status);
  };
}

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
  if (form("keys") !== "revoke") return { ...changed, notice: "password" };
  await keys.refresh();
  return { ...changed, notice: "passwordAndKeys" };
};

async function account(deps: PagesDeps, who: Person, said: Said, status = 200): Promise<Reply> {
  const { store, clock, isLanguage, oidc } = deps;
  const now = unixSeconds(clock);
  const { accountId } = who;
  const [today, month] = [dayOf(now), monthOf(now)];
  // The page shows the times of use, of which the last ones are still in memory.
  await deps.keys.flush();
  const [found, keys, days, identities] = await Promise.all([
    store.accounts.accountById(accountId),
    store.accounts.keysOf(accountId),
    // A month may have 31 days.
    store.charges.usageDays({ accountId, fromDay: Math.min(today - DAYS + 1, dayOf(monthStart(month))) }),
    deps.identities.of(who),
  ]);
  if (!found || found instanceof StoreDown || keys instanceof StoreDown) return message("Sorry", unavailable());
  if (days instanceof StoreDown || identities instanceof StoreDown) return message("Sorry", unavailable());
  const html = accountPage({
    viewer: viewer(who),
    asked: said.newKey === undefined ? proofAsked(deps, who, "/account") : undefined,
    identities,
    ...said,
    account: found,
    month: MONTH.format(clock.unixMs()),
    // The account's own sum is that of its last settlement's month, which may be another one after a clock jumped.
    spent: days.filter(({ day }) => monthOfDay(day) === month).reduce((sum, { cost }) => sum + cost, 0n),
    keys,
    usage: days.map((day) => ({ ...day, kind: isLanguage(day.item) ? "language" : "robot" })),
    today,
    provider: oidc?.name,
  });
  return shown(html, status);
}

const MONTH = new Intl.DateTimeFormat("en", { month: "long", year: "numeric", timeZone: "UTC" });

export interface AccountPage extends Said, IdentitiesShown {
  readonly account: Pick<Account, "credits" | "settled" | "held" | "paymentMethod" | "spendLimit">;
  /** The name of this month. */
  readonly month: string;
  /** The cost of this month in nano-dollars. */
  readonly spent: bigint;
  readonly keys: readonly KeyRecord[];
  readonly usage: readonly UsageRow[];
  /** Last day of the usage that is shown (std/calendar.ts). */
  readonly today: number;
}

export function accountPage(page: AccountPage): string {
  const { viewer, notice, problem, newKey, account, keys, asked } = page;
  const validKeys = keys.filter(({ revokedAt }) => revokedAt === undefined).length;
  const mayCreate = account.paymentMethod || account.credits > account.settled;
  return layout({
    heading: "Account",
    lead: html`<p><bdi>${viewer.email}</bdi></p>`,
    viewer,
    here: "/account",
    width: "sections",
    problem,
    notice,
    content: html`${newKey === undefined ? undefined : newKeySection(newKey)}
<div class="pair">
${creditSection(account)}
${limitSection(page)}
</div>
${keysSection(viewer, keys, { mayCreate, asked })}
${usageSection(page.usage, page.today)}
${passwordSection(viewer, validKeys)}
${identitiesSection(page)}`,
  });
}

const NANO_DOLLARS_PER_CENT = 10_000_000n;

function creditSection({ credits, settled, held, paymentMethod }: AccountPage["account"]): Html {
  const balance = credits - settled;
  const available = balance - held;
  const rounded = available % NANO_DOLLARS_PER_CENT !== 0n;
  return section(
    "credit",
    "Credit",
    html`<p class="figure"><span class="large">${money(available)}</span> available</p>
${rounded ? html`<p class="soft exact">exactly ${exactMoneyText(available)}</p>` : undefined}
<dl class="facts">
<div><dt>Balance</dt><dd>${money(balance)}</dd></div>
<div><dt>Held for runs in progress</dt><dd>${money(held)}</dd></div>
<div><dt>Payment method</dt><dd>${paymentMethod ? "on file" : "none"}</dd></div>
</dl>`,
  );
}

function limitSection({ viewer, month, spent, account: { spendLimit: limit } }: AccountPage): Html {
  return section(
    "limit",
    "Spend limit",
    html`<p class="figure"><span class="large">${money(spent)}</span> ${limit === undefined ? html`in ${month}, no limit` : html`of ${money(limit)} in ${month}`}</p>
${limit === undefined ? undefined : bar(spent, limit)}
<form class="line" method="post" action="/account/limit">
${hidden("csrf", viewer.csrf)}
${field({
  name: "usd",
  label: "Limit per month, in dollars",
  value: limit === undefined ? "" : usdText(limit).replace(/\.?0+$/, ""),
  hint: "At the limit, new runs are refused until the next month (UTC). Leave it empty for no limit.",
  required: false,
  attributes: { inputmode: "decimal", autocomplete: "off" },
})}
<button class="second" type="submit">Save the limit</button>
</form>`,
  );
}

/** Hidden from screen readers, because the text above it says the same. */
function bar(spent: bigint, limit: bigint): Html {
  const permille = limit <= 0n || spent >= limit ? 1000 : Number((spent * 1000n) / limit);
  const level = permille >= 1000 ? "full" : "part";
  return html`<svg class="progress" width="100%" height="8" aria-hidden="true" focusable="false"><rect class="track" width="100%" height="8" rx="4"/>${
    permille <= 0 ? undefined : html`<rect class="${level}" width="${permille / 10}%" height="8" rx="4"/>`
  }</svg>`;
}

function passwordSection({ csrf, email }: Viewer, keys: number): Html {
  // The field without a name is not sent; password managers learn from it which account the password belongs to.
  return section(
    "password",
    "Password",
    html`<form class="narrow" method="post" action="/account/password">
${hidden("csrf", csrf)}
<input type="email" autocomplete="username" value="${email}" aria-label="E-mail address" readonly hidden>
${ownPassword({ name: "current", label: "Current password" })}
${newPassword("New password")}
${keysChoice(keys)}
<p class="hint">Every other sign-in of this account ends.</p>
<button class="second" type="submit">Change the password</button>
</form>`,
  );
}
