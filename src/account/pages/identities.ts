/** The identities on the account page: those that sign in to the account, and the form that connects or disconnects one. */
import { hidden, proofAgain } from "../../web/field.ts";
import { section } from "../../web/layout.ts";
import { type Html, html } from "../../web/markup.ts";
import { moment } from "../../web/time.ts";
import type { ConnectedIdentity } from "../store/identities.ts";
import type { AccountPage } from "./account.ts";
import type { Change } from "./change.ts";

export const disconnectIdentity: Change = async ({ people, identities }, who, form, network) => {
  const unproved = await people.prove(who, { current: form("confirm"), network });
  const [, issuer = "", subject = ""] = /^(\S*) (.*)$/s.exec(form("identity")) ?? [];
  return unproved ?? (await identities.disconnect(who, { issuer, subject })) ?? "disconnected";
};

/** The button that connects comes first, since browsers press the first one where Enter is typed into the password. */
export function identitiesSection({ viewer, identities, provider, asked }: AccountPage): Html | undefined {
  if (provider === undefined && identities.length === 0) return undefined;
  const changes = asked === undefined || asked.password;
  return section(
    "identities",
    "Sign-in with a provider",
    html`<form method="post" action="/account/identities">
${hidden("csrf", viewer.csrf)}
<p class="soft">A person who is connected signs in to this account through the provider.</p>
${asked && proofAgain(asked, "identities")}
${changes && provider !== undefined ? html`<button class="second" type="submit">Connect with ${provider}</button>` : undefined}
<dl class="facts">
${identities.map((one) => connected(one, changes))}</dl>
</form>`,
  );
}

function connected({ issuer, subject, email, createdAt }: ConnectedIdentity, changes: boolean): Html {
  const name = email || subject;
  const button = html`<button class="plain" type="submit" formaction="/account/identities/disconnect" name="identity" value="${issuer} ${subject}">Disconnect<span class="unseen"> ${name}</span></button>`;
  return html`<div><dt><bdi>${name}</bdi><br>${issuer}, since ${moment(createdAt)}</dt><dd>${changes ? button : undefined}</dd></div>
`;
}
