/** The identities on the account page: those that sign in to the account, and the form that connects or disconnects one. */
import { hidden, type ProofAsked, proofAgain } from "../../web/field.ts";
import { section, type Viewer } from "../../web/layout.ts";
import { type Html, html } from "../../web/markup.ts";
import { moment } from "../../web/time.ts";
import type { ConnectedIdentity } from "../store/identities.ts";
import type { Change } from "./change.ts";

export const disconnectIdentity: Change = async ({ people, identities }, who, form, network) => {
  const unproved = await people.prove(who, { current: form("confirm"), network });
  const [, issuer = "", subject = ""] = /^(\S*) (.*)$/s.exec(form("identity")) ?? [];
  return unproved ?? (await identities.disconnect(who, { issuer, subject })) ?? "disconnected";
};

export interface IdentitiesShown {
  readonly viewer: Viewer;
  readonly identities: readonly ConnectedIdentity[];
  /** The name of the provider with which a person can be connected. */
  readonly provider?: string | undefined;
  readonly asked: ProofAsked | undefined;
}

/** The button that connects comes first, since browsers press the first one where Enter is typed into the password. */
export function identitiesSection({ viewer, identities, provider, asked }: IdentitiesShown): Html | undefined {
  if (provider === undefined && identities.length === 0) return undefined;
  const changes = asked === undefined || asked.password;
  const none = html`<p>No person of a provider is connected with this account.</p>`;
  return section(
    "identities",
    "Sign-in with a provider",
    html`<form method="post" action="/account/identities">
${hidden("csrf", viewer.csrf)}
${asked && proofAgain(asked, "identities")}
${changes && provider !== undefined ? html`<button class="second" type="submit">Connect with ${provider}</button>` : undefined}
${identities.length === 0 ? none : identities.map((one) => connected(one, changes))}
</form>`,
  );
}

function connected({ issuer, subject, email, createdAt }: ConnectedIdentity, changes: boolean): Html {
  const name = email || subject;
  const button = html`<br><button class="second" type="submit" formaction="/account/identities/disconnect" name="identity" value="${issuer} ${subject}">Disconnect<span class="unseen"> ${name}</span></button>`;
  return html`<p><strong><bdi>${name}</bdi></strong> <span class="soft">${issuer}, since ${moment(createdAt)}</span>${changes ? button : undefined}</p>
`;
}
