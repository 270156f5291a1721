/** `/device`: a person compares the code on the terminal, sees what asks and from where, and decides. */
import type { Reply } from "../../http/route.ts";
import { seenSeconds } from "../../std/seen-clock.ts";
import { field, hidden, type ProofAsked, proofAgain } from "../../web/field.ts";
import { layout, type Viewer } from "../../web/layout.ts";
import { Html, html } from "../../web/markup.ts";
import { ago } from "../../web/time.ts";
import { PageRefusal } from "../errors.ts";
import type { Person } from "../people.ts";
import type { DeviceLogin } from "../store/device-logins.ts";
import { again, type FormVisit, formPerson, person, proofAsked, shown, type Visit, viewer } from "./page.ts";

/** The code of a complete link is shown to be compared, never taken as confirmed (RFC 8628, section 5.4). */
export async function showDevice(from: Visit): Promise<Reply> {
  const userCode = new URL(from.request.url).searchParams.get("user_code") ?? "";
  const next = userCode === "" ? "/device" : `/device?user_code=${encodeURIComponent(userCode)}`;
  const who = await person(from, next);
  return "token" in who ? shown(deviceEnterPage({ viewer: viewer(who), userCode })) : who;
}

export async function enterCode(from: FormVisit): Promise<Reply> {
  const who = await formPerson(from, "/device");
  if (!("token" in who)) return who;
  const typed = from.form("user_code");
  const found = await from.deps.deviceLogins.find(who, typed, from.origin.network);
  if (found instanceof PageRefusal) return enterAgain(who, typed, found);
  const { deviceName, address, createdAt } = found.login;
  const askedSecondsAgo = Math.max(0, seenSeconds(from.deps.clock) - createdAt);
  const login = { userCode: found.userCode, deviceName, address, askedSecondsAgo };
  const asked = proofAsked(from.deps, who, `/device?user_code=${found.userCode}`);
  return shown(deviceConfirmPage({ viewer: viewer(who), ...login, asked }));
}

export async function decide(from: FormVisit): Promise<Reply> {
  const who = await formPerson(from, "/device");
  if (!("token" in who)) return who;
  const { deps, form, origin } = from;
  const { network } = origin;
  const [decision, typed] = [form("decision"), form("user_code")];
  if (decision !== "approve" && decision !== "deny") return enterAgain(who, typed, NO_BUTTON);
  const approve = decision === "approve";
  // The device gets a key, so approving it asks for what making one asks for.
  const unproved = approve ? await deps.people.prove(who, { current: form("confirm"), network }) : undefined;
  const refused = unproved ?? (await deps.deviceLogins.decide(who, typed, network, approve));
  if (refused) return enterAgain(who, typed, refused);
  return shown(deviceDonePage({ viewer: viewer(who), decision }));
}

const NO_BUTTON = new PageRefusal("Choose one of the two buttons.");

function enterAgain(who: Person, userCode: string, refused: PageRefusal): Reply {
  return again(deviceEnterPage({ viewer: viewer(who), userCode, problem: refused.text }), refused);
}

interface DeviceEnterPage {
  readonly viewer: Viewer;
  readonly userCode: string;
  readonly problem?: string;
}

export function deviceEnterPage({ viewer, userCode, problem }: DeviceEnterPage): string {
  return layout({
    heading: "Sign in a device",
    lead: html`<p>Enter the code that your terminal shows.</p>`,
    viewer,
    here: "/device",
    problem,
    content: html`<form class="panel" method="post" action="/device">
${hidden("csrf", viewer.csrf)}
${field({
  name: "user_code",
  label: "Code",
  value: userCode,
  hint: "Eight letters in two groups, such as WDJB-MJHT.",
  problem,
  attributes: {
    class: "code",
    inputmode: "text",
    autocapitalize: "characters",
    autocomplete: "off",
    spellcheck: "false",
    pattern: "\\s*[A-Za-z0-9]{4}[\\s\\-]*[A-Za-z0-9]{4}\\s*",
    title: "Eight letters in two groups, such as WDJB-MJHT",
  },
})}
<button class="primary" type="submit">Continue</button>
</form>`,
  });
}

interface DeviceConfirmPage extends Pick<DeviceLogin, "deviceName" | "address"> {
  readonly viewer: Viewer;
  readonly userCode: string;
  readonly askedSecondsAgo: number;
  readonly asked: ProofAsked | undefined;
}

export function deviceConfirmPage(data: DeviceConfirmPage): string {
  const { viewer, userCode, deviceName, address, askedSecondsAgo, asked } = data;
  return layout({
    heading: "Does this device belong to you?",
    lead: html`<p>Approve it only if your terminal shows exactly this code.</p>`,
    viewer,
    here: "/device",
    content: html`<form class="panel" method="post" action="/device/decide">
${hidden("csrf", viewer.csrf)}
${hidden("user_code", userCode)}
<p class="compare"><span class="unseen">Code: </span><code>${userCode}</code></p>
<dl class="facts">
<div><dt>Device</dt><dd><bdi>${deviceName}</bdi></dd></div>
<div><dt>Program</dt><dd>tendon-cli</dd></div>
<div><dt>Address</dt><dd><bdi>${address}</bdi></dd></div>
<div><dt>Asked</dt><dd>${ago(askedSecondsAgo)}</dd></div>
<div><dt>Account</dt><dd><bdi>${viewer.email}</bdi></dd></div>
</dl>
<p>The device gets a key of this account. With it, it can run models and spend this account’s credit, until you revoke the key.</p>
<p class="warning" id="warning"><strong>Approve only if you started this yourself.</strong> If somebody sent you the code or a link to this page, deny.</p>
${asked && proofAgain(asked, "device")}
<div class="choice">
${asked && !asked.password ? undefined : decision("approve", "Approve")}
${decision("deny", "Deny")}
</div>
</form>`,
  });
}

function decision(value: keyof typeof DONE, text: string): Html {
  return html`<button class="${value === "approve" ? "primary" : "second"}" type="submit" name="decision" value="${value}" aria-describedby="warning"${value === "deny" ? html` formnovalidate` : undefined}>${text}</button>`;
}

const DONE = {
  approve: {
    heading: "The device is signed in",
    text: "Go back to your terminal: it continues by itself. You can close this page.",
    after: "The device’s key is in your list of keys; revoke it there when you no longer use the device.",
  },
  deny: {
    heading: "The device was denied",
    text: "It got no key and cannot use your account. You can close this page.",
    after: "If you did not start this yourself, nothing more is needed.",
  },
} as const;

export function deviceDonePage({ viewer, decision }: { viewer: Viewer; decision: keyof typeof DONE }): string {
  const { heading, text, after } = DONE[decision];
  return layout({
    heading,
    viewer,
    here: "/device",
    content: html`<div class="panel">
${decision === "approve" ? TICK : undefined}
<p>${text}</p>
<p class="soft">${after}</p>
<p><a href="/account#keys">See your keys</a></p>
</div>`,
  });
}

const TICK = new Html(
  `<svg class="tick" width="48" height="48" viewBox="0 0 48 48" aria-hidden="true" focusable="false"><circle cx="24" cy="24" r="22" fill="none" stroke="currentColor" stroke-width="3"/><path d="M15 25l6.5 6.5L34 18" fill="none" stroke="currentColor" stroke-width="3.5" stroke-linecap="round" stroke-linejoin="round"/></svg>`,
);
