/** Every page for people, with ordinary data and with what an attacker would send. */
import { type AccountPage, accountPage } from "../../../src/account/views/account.ts";
import { deviceConfirmPage, deviceDonePage, deviceEnterPage } from "../../../src/account/views/device.ts";
import { signInPage, signUpPage, welcomePage } from "../../../src/account/views/sign-in.ts";
import type { UsageRow } from "../../../src/account/views/usage.ts";
import { messagePage } from "../../../src/web/layout.ts";

export const HOSTILE = `"><script>alert('1')</script><img src=x onerror=alert(2)>&amp;\u0000\u001b[2J\u202e`;

export function usageRow(
  day: string,
  model: string,
  runs: number,
  cost: bigint,
  more: Partial<UsageRow> = {},
): UsageRow {
  return {
    day,
    kind: "robot",
    model,
    runs,
    cost,
    tokensIn: 200 * runs,
    tokensCached: 9 * runs,
    out: 30 * runs,
    ...more,
  };
}

/** An account's page whose texts from users are all `text`. */
export function accountData(text: string): AccountPage {
  return {
    viewer: { email: text, csrf: "csrf-1" },
    credit: { balance: 100_000_000_000n, held: 42_000n, available: 99_999_958_000n, paymentMethod: false },
    month: { name: "November 2026", settled: 25_000_000_000n, limit: 100_000_000_000n },
    limitText: text,
    keys: [
      { prefix: "tdn_AAAA", name: text, createdAt: 1_795_233_827, lastUsedAt: undefined, revokedAt: undefined },
      { prefix: "tdn_BBBB", name: text, createdAt: 1, lastUsedAt: 1_795_233_827, revokedAt: 1_795_233_827 },
    ],
    usage: [
      usageRow("2026-11-20", text, 3, 1_300_000n),
      usageRow("2026-11-20", `${text}:async`, 3, 1_300_000n, { kind: "language" }),
    ],
    today: "2026-11-21",
    passwordCharsMin: 12,
    askPassword: false,
  };
}

/** Every page in every form that it has. */
export function pagesOf(text: string): Readonly<Record<string, string>> {
  const viewer = { email: text, csrf: "csrf-1" };
  const account = accountData(text);
  const nothing = { balance: 0n, held: 0n, available: 0n, paymentMethod: false };
  const made = { passwordCharsMin: 12 };
  const device = { viewer, userCode: text, deviceName: text, address: text, askedSecondsAgo: 40, askPassword: true };
  return {
    signIn: signInPage({ email: text, next: text, problem: text, signUpOpen: true }),
    signUp: signUpPage({ email: text, problem: text, ...made }),
    welcome: welcomePage({
      token: text,
      email: text,
      keys: 2,
      emailFixed: true,
      operator: false,
      problem: text,
      ...made,
    }),
    operator: welcomePage({ token: text, email: text, keys: 0, emailFixed: false, operator: true, ...made }),
    deviceEnter: deviceEnterPage({ viewer, userCode: text, problem: text }),
    deviceConfirm: deviceConfirmPage(device),
    deviceApproved: deviceDonePage({ viewer, decision: "approved" }),
    deviceDenied: deviceDonePage({ viewer, decision: "denied" }),
    account: accountPage({ ...account, newKey: { key: text, name: text }, notice: text, problem: text }),
    accountEmpty: accountPage({ ...account, credit: nothing, keys: [], usage: [] }),
    message: messagePage({ heading: text, text, link: { href: "/sign-in", text } }),
  };
}
