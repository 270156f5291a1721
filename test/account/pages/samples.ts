/** Every page for people, with ordinary data and with what an attacker would send. */
import { type AccountPage, accountPage } from "../../../src/account/pages/account.ts";
import { deviceConfirmPage, deviceDonePage, deviceEnterPage } from "../../../src/account/pages/device.ts";
import { signInPage, signUpPage, welcomePage } from "../../../src/account/pages/sign-in.ts";
import type { UsageRow } from "../../../src/account/pages/usage.ts";
import { dayOf } from "../../../src/std/calendar.ts";
import { messagePage } from "../../../src/web/layout.ts";

export const HOSTILE = `"><script>alert('1')</script><img src=x onerror=alert(2)>&amp;\u0000\u001b[2J\u202e`;

/** The number of a day such as `2026-11-21`. */
export function dayNumber(day: string): number {
  return dayOf(Date.parse(`${day}T00:00:00Z`) / 1000);
}

export function usageRow(
  day: string,
  item: string,
  charges: number,
  cost: bigint,
  more: Partial<UsageRow> = {},
): UsageRow {
  const tokens = { promptTokens: 200 * charges, cachedTokens: 9 * charges, completionTokens: 30 * charges };
  return { day: dayNumber(day), kind: "robot", item, charges, cost, ...tokens, ...more };
}

/** An account's page whose texts from users are all `text`. */
export function accountData(text: string): AccountPage {
  const key = { sha256: new Uint8Array(32), accountId: "a", name: text };
  return {
    viewer: { email: text, csrf: "csrf-1" },
    account: {
      credits: 125_000_000_000n,
      settled: 25_000_000_000n,
      held: 42_000n,
      paymentMethod: false,
      spendLimit: 100_000_000_000n,
    },
    month: "November 2026",
    spent: 25_000_000_000n,
    keys: [
      { ...key, publicId: "AAAA", createdAt: 1_795_233_827, lastUsedAt: undefined, revokedAt: undefined },
      { ...key, publicId: "BBBB", createdAt: 1, lastUsedAt: 1_795_233_827, revokedAt: 1_795_233_827 },
    ],
    usage: [
      usageRow("2026-11-20", text, 3, 1_300_000n),
      usageRow("2026-11-20", `${text}:async`, 3, 1_300_000n, { kind: "language" }),
    ],
    today: dayNumber("2026-11-21"),
    identities: [{ issuer: text, subject: text, email: text, createdAt: 1_795_233_827 }],
    asked: undefined,
  };
}

/** Every page in every form that it has. */
export function pagesOf(text: string): Readonly<Record<string, string>> {
  const viewer = { email: text, csrf: "csrf-1" };
  const account = accountData(text);
  const poor = { ...account.account, credits: 0n, settled: 0n, held: 0n };
  const device = { viewer, userCode: text, deviceName: text, address: text, askedSecondsAgo: 40 };
  const provider = { name: text, href: "/sign-in/oidc" };
  const welcome = { token: text, email: text };
  return {
    signIn: signInPage({ email: text, next: text, problem: text, signUpOpen: true, provider: text }),
    signUp: signUpPage({ email: text, problem: text }),
    welcome: welcomePage({ ...welcome, keys: 2, operator: false, problem: text }),
    operator: welcomePage({ ...welcome, keys: 0, operator: true }),
    deviceEnter: deviceEnterPage({ viewer, userCode: text, problem: text }),
    deviceConfirm: deviceConfirmPage({ ...device, asked: { password: true, provider } }),
    deviceProvider: deviceConfirmPage({ ...device, asked: { password: false, provider } }),
    deviceApproved: deviceDonePage({ viewer, decision: "approve" }),
    deviceDenied: deviceDonePage({ viewer, decision: "deny" }),
    account: accountPage({
      ...account,
      newKey: { key: text, name: text },
      notice: text,
      problem: text,
      provider: text,
      asked: { password: true, provider },
    }),
    accountProvider: accountPage({ ...account, provider: text, asked: { password: false, provider } }),
    accountEmpty: accountPage({ ...account, account: poor, keys: [], usage: [] }),
    message: messagePage({ heading: text, text, link: { href: "/sign-in", text } }),
  };
}
