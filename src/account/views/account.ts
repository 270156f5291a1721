/** The account page: credit, spend limit, keys, usage, password. */

import { field, hidden, keysChoice, newPassword } from "../../web/field.ts";
import { layout, section, type Viewer } from "../../web/layout.ts";
import { type Html, html } from "../../web/markup.ts";
import { exactMoneyText, money } from "../../web/money.ts";
import { usageSection } from "./chart.ts";
import { type KeyRow, keysSection, newKeySection } from "./keys.ts";
import type { UsageRow } from "./usage.ts";

/** All amounts are nano-dollars. */
export interface AccountPage {
  viewer: Viewer;
  notice?: string;
  problem?: string;
  /** A key that was just created: the only time it is shown. */
  newKey?: { key: string; name: string };
  credit: { balance: bigint; held: bigint; available: bigint; paymentMethod: boolean };
  month: { name: string; settled: bigint; limit: bigint | undefined };
  /** Content of the field for the spend limit. */
  limitText: string;
  keys: readonly KeyRow[];
  usage: readonly UsageRow[];
  /** Last day of the usage, UTC: `2026-11-21`. */
  today: string;
  passwordCharsMin: number;
  /** The name of the provider with which the account can be connected. */
  provider?: string | undefined;
  /** Making a key asks for the password once more. */
  askPassword: boolean;
}

export function accountPage(data: AccountPage): string {
  const { viewer, notice, problem, newKey, credit, month, limitText, keys, usage, today, passwordCharsMin, provider } =
    data;
  const validKeys = keys.filter(({ revokedAt }) => revokedAt === undefined).length;
  const mayCreate = credit.paymentMethod || credit.balance > 0n;
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
${creditSection(credit)}
${limitSection(viewer, month, limitText)}
</div>
${keysSection(viewer, keys, { mayCreate, askPassword: data.askPassword })}
${usageSection(usage, today)}
${passwordSection(viewer, passwordCharsMin, validKeys)}
${provider === undefined ? undefined : providerSection(provider)}`,
  });
}

const NANO_DOLLARS_PER_CENT = 10_000_000n;

function creditSection({ balance, held, available, paymentMethod }: AccountPage["credit"]): Html {
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

function limitSection({ csrf }: Viewer, { name, settled, limit }: AccountPage["month"], limitText: string): Html {
  return section(
    "limit",
    "Spend limit",
    html`<p class="figure"><span class="large">${money(settled)}</span> ${limit === undefined ? html`in ${name}, no limit` : html`of ${money(limit)} in ${name}`}</p>
${limit === undefined ? undefined : bar(settled, limit)}
<form class="line" method="post" action="/account/limit">
${hidden("csrf", csrf)}
${field({
  name: "usd",
  label: "Limit per month, in dollars",
  value: limitText,
  hint: "At the limit, new runs are refused until the next month (UTC). Leave it empty for no limit.",
  required: false,
  attributes: { inputmode: "decimal", autocomplete: "off" },
})}
<button class="second" type="submit">Save the limit</button>
</form>`,
  );
}

/** Hidden from screen readers, because the text above it says the same. */
function bar(settled: bigint, limit: bigint): Html {
  const permille = limit <= 0n || settled >= limit ? 1000 : Number((settled * 1000n) / limit);
  const level = permille >= 1000 ? "full" : "part";
  return html`<svg class="progress" width="100%" height="8" aria-hidden="true" focusable="false"><rect class="track" width="100%" height="8" rx="4"/>${
    permille <= 0 ? undefined : html`<rect class="${level}" width="${permille / 10}%" height="8" rx="4"/>`
  }</svg>`;
}

function providerSection(provider: string): Html {
  return section(
    "provider",
    `Sign-in with ${provider}`,
    html`<p>Whoever you are there comes to this account from then on.</p>
<p><a href="/sign-in/oidc?next=%2Faccount&amp;purpose=connect">Connect this account with ${provider}</a></p>`,
  );
}

function passwordSection({ csrf, email }: Viewer, charsMin: number, keys: number): Html {
  // The field without a name is not sent; password managers learn from it which account the password belongs to.
  return section(
    "password",
    "Password",
    html`<form class="narrow" method="post" action="/account/password">
${hidden("csrf", csrf)}
<input type="email" autocomplete="username" value="${email}" aria-label="E-mail address" readonly hidden>
${field({
  name: "current",
  label: "Current password",
  type: "password",
  attributes: { autocomplete: "current-password" },
})}
${newPassword({ label: "New password", charsMin, problem: false })}
${keys === 0 ? undefined : keysChoice(keys)}
<p class="hint">Every other sign-in of this account ends.</p>
<button class="second" type="submit">Change the password</button>
</form>`,
  );
}
