/** The pages for people who are not signed in: sign in, sign up, and the page of a one-time link. */
import { field, hidden, keysChoice, newPassword } from "../../web/field.ts";
import { layout } from "../../web/layout.ts";
import { type Html, html } from "../../web/markup.ts";

export interface SignInPage {
  email: string;
  /** Where to go afterwards. */
  next: string;
  problem?: string;
  signUpOpen: boolean;
  /** The name of the provider with which people sign in as well. */
  provider?: string;
}

export function signInPage({ email, next, problem, signUpOpen, provider }: SignInPage): string {
  return layout({
    heading: "Sign in",
    problem,
    content: html`<form class="panel" method="post" action="/sign-in">
${hidden("next", next)}
${emailField(email, problem !== undefined)}
${field({
  name: "password",
  label: "Password",
  type: "password",
  problem: problem !== undefined,
  attributes: { autocomplete: "current-password" },
})}
<button class="primary" type="submit">Sign in</button>
</form>
${provider === undefined ? undefined : html`<p class="below"><a href="/sign-in/oidc?next=${encodeURIComponent(next)}">Sign in with ${provider}</a></p>`}
${signUpOpen ? html`<p class="below">No account yet? <a href="/sign-up">Sign up</a></p>` : undefined}`,
  });
}

export interface SignUpPage {
  email: string;
  problem?: string;
  passwordCharsMin: number;
}

export function signUpPage({ email, problem, passwordCharsMin }: SignUpPage): string {
  return layout({
    heading: "Sign up",
    lead: html`<p>An account holds your keys, your credit and what you have used.</p>`,
    problem,
    content: html`<form class="panel" method="post" action="/sign-up">
${emailField(email, problem !== undefined)}
${newPassword({ label: "Password", charsMin: passwordCharsMin, problem: problem !== undefined })}
<button class="primary" type="submit">Create the account</button>
</form>
<p class="below">Have an account? <a href="/sign-in">Sign in</a></p>`,
  });
}

export interface WelcomePage {
  token: string;
  email: string;
  /** The e-mail belongs to the link and cannot be changed. */
  emailFixed: boolean;
  /** The link makes the operator's account. */
  operator: boolean;
  /** Valid keys of an account whose password is replaced. */
  keys: number;
  problem?: string;
  passwordCharsMin: number;
}

export function welcomePage({
  token,
  email,
  emailFixed,
  operator,
  keys,
  problem,
  passwordCharsMin,
}: WelcomePage): string {
  return layout({
    heading: operator ? "Create the operator’s account of this service" : "Choose your password",
    lead: operator
      ? html`<p>The operator’s account belongs to whoever runs this service. This link works once.</p>`
      : html`<p>You sign in with it from now on. This link works once.</p>`,
    problem,
    content: html`<form class="panel" method="post" action="/welcome">
${hidden("token", token)}
${emailField(email, problem !== undefined, emailFixed)}
${newPassword({ label: "Password", charsMin: passwordCharsMin, problem: problem !== undefined })}
${keys === 0 ? undefined : keysChoice(keys)}
<button class="primary" type="submit">${operator ? "Create the operator’s account" : "Save and sign in"}</button>
</form>`,
  });
}

function emailField(email: string, problem: boolean, fixed = false): Html {
  return field({
    name: "email",
    label: "E-mail address",
    type: "email",
    value: email,
    problem,
    ...(fixed ? { hint: "The link was made for this address." } : {}),
    // Password managers save the password with the field that is marked as the user name.
    attributes: {
      autocomplete: "username",
      autocapitalize: "none",
      spellcheck: "false",
      ...(fixed ? { readonly: true } : {}),
    },
  });
}
