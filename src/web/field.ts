/** Fields of forms: input with label and hint, and hidden ones. */
import { LIMITS } from "../limits.ts";
import { Html, html } from "./markup.ts";

interface Field {
  /** That of its element, where the name alone is not the only one of the page. */
  readonly id?: string;
  readonly name: string;
  readonly label: string;
  readonly type?: "text" | "email" | "password";
  readonly value?: string;
  readonly hint?: string;
  /** The page's problem, if it concerns this field's form. */
  readonly problem?: string | undefined;
  readonly required?: boolean;
  /** Further attributes, such as `autocomplete`; true: an attribute without a value. */
  readonly attributes?: Readonly<Record<string, string | number | true>>;
}

/** Id of the element that shows the page's problem. */
export const PROBLEM_ID = "problem";

export function field(it: Field): Html {
  const { name, label, type = "text", value, hint, problem, required = true, attributes = {} } = it;
  const { id = `field-${name}` } = it;
  const described = [...(problem === undefined ? [] : [PROBLEM_ID]), ...(hint === undefined ? [] : [`${id}-hint`])];
  const all = Object.entries({
    ...(value === undefined ? {} : { value }),
    ...(required ? { required: true as const } : {}),
    ...(described.length === 0 ? {} : { "aria-describedby": described.join(" ") }),
    ...attributes,
  });
  return html`<div class="field">
<label for="${id}">${label}</label>
<input id="${id}" name="${name}" type="${type}"${all.map(([key, of]) => attribute(key, of))}>
${hint === undefined ? undefined : html`<p class="hint" id="${id}-hint">${hint}</p>`}
</div>
`;
}

function attribute(key: string, value: string | number | true): Html {
  // Names of attributes are constants of this program, so they are not escaped.
  return value === true ? new Html(` ${key}`) : html` ${new Html(key)}="${value}"`;
}

export function hidden(name: string, value: string): Html {
  return html`<input type="hidden" name="${name}" value="${value}">`;
}

export function newPassword(label: string, problem?: string): Html {
  return field({
    label,
    problem,
    name: "password",
    type: "password",
    hint: `At least ${LIMITS.passwordCharsMin} characters. A few unrelated words work well.`,
    attributes: { autocomplete: "new-password", minlength: LIMITS.passwordCharsMin },
  });
}

/** A password that the account has. */
export function ownPassword(it: Pick<Field, "id" | "name" | "label" | "hint" | "problem">): Html {
  return field({ ...it, type: "password", attributes: { autocomplete: "current-password" } });
}

/** The ways in which a person can prove anew who they are, before something that outlives the sign-in is given out. */
export interface ProofAsked {
  readonly password: boolean;
  /** The provider whose sign-in is a proof, and the address where it begins. */
  readonly provider?: { readonly name: string; readonly href: string } | undefined;
}

/** The password once more, or the way to the provider. `form`: its name, as a page may have several. */
export function proofAgain({ password, provider }: ProofAsked, form: string): Html {
  const id = `field-confirm-${form}`;
  const hint = "Asked for because you signed in more than ten minutes ago.";
  const typed = ownPassword({ id, name: "confirm", label: "Your password", hint });
  const link = provider && html`<a href="${provider.href}">sign in with ${provider.name} again</a>`;
  if (password) return html`${typed}${link && html`<p class="hint">Or ${link}.</p>`}`;
  const way = link ?? html`ask the operator of this service for a link that sets a password`;
  return html`<p class="warning">You signed in more than ten minutes ago: ${way} first.</p>`;
}

/** The choice whether the account's keys stay valid with a new password. No answer is selected beforehand. */
export function keysChoice(keys: number): Html | undefined {
  if (keys === 0) return undefined;
  const [which, them] = keys === 1 ? ["The account has a key", "it"] : [`The account has ${keys} keys`, "them"];
  return html`<fieldset class="ask">
<legend>${which}. What becomes of ${them}?</legend>
<label><input type="radio" name="keys" value="keep" required> ${keys === 1 ? "It stays" : "They stay"}: programs and robots go on.</label>
<label><input type="radio" name="keys" value="revoke" required> ${keys === 1 ? "Revoke it" : "Revoke them all"}: somebody else may have ${them}.</label>
</fieldset>
`;
}
