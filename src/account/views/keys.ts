/** The keys on the account page: a new key, the list, and the form for another one. */
import { field, hidden, passwordAgain } from "../../web/field.ts";
import { section, type Viewer } from "../../web/layout.ts";
import { type Html, html } from "../../web/markup.ts";
import { moment } from "../../web/time.ts";

export interface KeyRow {
  /** The part of the key that is no secret. */
  prefix: string;
  name: string;
  /** Unix seconds, like the other times. */
  createdAt: number;
  lastUsedAt: number | undefined;
  revokedAt: number | undefined;
}

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
  readonly askPassword: boolean;
}

export function keysSection(viewer: Viewer, keys: readonly KeyRow[], { mayCreate, askPassword }: KeysShown): Html {
  return section(
    "keys",
    "Keys",
    html`<p class="soft">Programs and robots use a key to act for this account.</p>
${keys.length === 0 ? html`<p>There are no keys yet.</p>` : keysTable(viewer, keys)}
<h3>Create a key</h3>
${mayCreate ? keyForm(viewer, askPassword) : WHY_NOT}`,
  );
}

const WHY_NOT = html`<p class="warning">An account needs a payment method or credit before a key can be created, and this one has neither. Ask the operator of this service for credit.</p>`;

function keyForm({ csrf }: Viewer, askPassword: boolean): Html {
  return html`<form class="line" method="post" action="/account/keys">
${hidden("csrf", csrf)}
${field({
  name: "name",
  label: "Name",
  hint: "So that you know later where it is used, such as “arm in lab 2”.",
  attributes: { autocomplete: "off" },
})}
${askPassword ? passwordAgain() : undefined}
<button class="second" type="submit">Create the key</button>
</form>
`;
}

// On a phone each row is laid out as a card; the roles keep it a table for screen readers.
function keysTable(viewer: Viewer, keys: readonly KeyRow[]): Html {
  return html`<table class="cards" role="table">
<caption>Keys of this account; times are UTC</caption>
<thead role="rowgroup"><tr role="row">
<th role="columnheader" scope="col">Key</th>
<th role="columnheader" scope="col">Name</th>
<th role="columnheader" scope="col">Created</th>
<th role="columnheader" scope="col">Last used</th>
<th role="columnheader" scope="col">Revoke</th>
</tr></thead>
<tbody role="rowgroup">
${keys.map((key) => keyRow(viewer, key))}</tbody>
</table>
`;
}

function keyRow(viewer: Viewer, { prefix, name, createdAt, lastUsedAt, revokedAt }: KeyRow): Html {
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
