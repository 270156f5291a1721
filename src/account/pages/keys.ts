/** The keys on the account page: a new key, the list, and the form for another one. */
import { unixSeconds } from "../../std/clock.ts";
import { StoreDown } from "../../store/store.ts";
import { field, hidden, type ProofAsked, proofAgain } from "../../web/field.ts";
import { section, type Viewer } from "../../web/layout.ts";
import { type Html, html } from "../../web/markup.ts";
import { moment } from "../../web/time.ts";
import { KEY_REFUSALS } from "../device-login.ts";
import { PageRefusal, unavailable } from "../errors.ts";
import { keyNameProblem, keyPrefix, newKey, publicIdOf } from "../key.ts";
import type { KeyRecord } from "../store/keys.ts";
import type { Change } from "./change.ts";

/** The new key is shown once, on the page that answers the form. */
export const createKey: Change = async ({ store, clock, people, keys }, who, form, network) => {
  const name = form("name").trim();
  const wrong = keyNameProblem(name);
  if (wrong) return new PageRefusal(`The key is not made: ${wrong}.`);
  const unproved = await people.prove(who, { current: form("confirm"), network });
  if (unproved) return unproved;
  const { key, record } = newKey(unixSeconds(clock));
  const added = await store.accounts.keyAdd({ ...record, accountId: who.accountId, name });
  if (added === "added") {
    keys.prove(record.publicId);
    return { newKey: { key, name } };
  }
  if (typeof added === "string" && added !== "id_taken") return new PageRefusal(KEY_REFUSALS[added]);
  return unavailable();
};

export const revokeKey: Change = async ({ store, clock, keys }, { accountId }, form) => {
  const publicId = publicIdOf(form("prefix")) ?? "";
  const revoked = await store.accounts.keyRevoke({ publicId, accountId, at: unixSeconds(clock) });
  if (revoked instanceof StoreDown) return unavailable();
  if (revoked === "unknown") return new PageRefusal("The account has no such key.");
  await keys.refresh();
  return "revoked";
};

export function newKeySection({ key, name }: { readonly key: string; readonly name: string }): Html {
  return html`<section class="panel new-key" aria-labelledby="new-key">
<h2 id="new-key">Your new key</h2>
<div class="field">
<label for="field-key">Key “<bdi>${name}</bdi>”</label>
<input id="field-key" class="key" type="text" readonly value="${key}" autocomplete="off" spellcheck="false" aria-describedby="field-key-hint">
<p class="hint" id="field-key-hint"><strong>Copy it now: it is not shown again.</strong> Keep it as you keep a password. A lost key cannot be recovered; revoke it and create another.</p>
</div>
</section>
`;
}

interface KeysShown {
  readonly mayCreate: boolean;
  readonly asked: ProofAsked | undefined;
}

export function keysSection(viewer: Viewer, keys: readonly KeyRecord[], { mayCreate, asked }: KeysShown): Html {
  return section(
    "keys",
    "Keys",
    html`<p class="soft">Programs and robots use a key to act for this account.</p>
${keys.length === 0 ? html`<p>There are no keys yet.</p>` : keysTable(viewer, keys)}
<h3>Create a key</h3>
${mayCreate ? keyForm(viewer, asked) : WHY_NOT}`,
  );
}

const WHY_NOT = html`<p class="warning">An account needs a payment method or credit before a key can be created, and this one has neither. Ask the operator of this service for credit.</p>`;

function keyForm({ csrf }: Viewer, asked: ProofAsked | undefined): Html {
  const proof = asked && proofAgain(asked, "key");
  if (proof && !asked.password) return proof;
  return html`<form class="line" method="post" action="/account/keys">
${hidden("csrf", csrf)}
${field({
  name: "name",
  label: "Name",
  hint: "So that you know later where it is used, such as “arm in lab 2”.",
  attributes: { autocomplete: "off" },
})}
${proof}
<button class="second" type="submit">Create the key</button>
</form>
`;
}

/** A phone shows each row as a card; the roles keep it a table for screen readers. */
function keysTable(viewer: Viewer, keys: readonly KeyRecord[]): Html {
  return html`<table class="cards" role="table">
<caption>Keys of this account; times are UTC</caption>
<thead role="rowgroup"><tr role="row">
${["Key", "Name", "Created", "Last used", "Revoke"].map((name) => html`<th role="columnheader" scope="col">${name}</th>`)}
</tr></thead>
<tbody role="rowgroup">
${keys.map((key) => keyRow(viewer, key))}</tbody>
</table>
`;
}

function keyRow(viewer: Viewer, { publicId, name, createdAt, lastUsedAt, revokedAt }: KeyRecord): Html {
  const prefix = keyPrefix(publicId);
  const used = lastUsedAt === undefined ? html`<span class="soft">never</span>` : moment(lastUsedAt);
  const end =
    revokedAt === undefined ? revoking(viewer, prefix) : html`<span class="soft">revoked ${moment(revokedAt)}</span>`;
  return html`<tr role="row"${revokedAt === undefined ? undefined : html` class="revoked"`}>
<th role="rowheader" scope="row"><code>${prefix}…</code></th>
<td role="cell" class="called"><bdi>${name}</bdi></td>
<td role="cell"><span class="what" aria-hidden="true">Created</span>${moment(createdAt)}</td>
<td role="cell"><span class="what" aria-hidden="true">Last used</span>${used}</td>
<td role="cell" class="end">${end}</td>
</tr>
`;
}

/** Revoking cannot be undone, so its button is shown only after a first click. */
function revoking({ csrf }: Viewer, prefix: string): Html {
  const which = html`<span class="unseen"> key ${prefix}</span>`;
  return html`<details class="revoke">
<summary>Revoke${which}</summary>
<form method="post" action="/account/keys/revoke">
${hidden("csrf", csrf)}
${hidden("prefix", prefix)}
<p>Everything that uses this key stops working at once.</p>
<button class="danger" type="submit">Revoke for good${which}</button>
</form>
</details>`;
}
