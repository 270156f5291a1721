/** What the forms of the account page do and what they may end in. */
import type { Form } from "../../http/body-rules.ts";
import type { PageRefusal } from "../errors.ts";
import type { Person } from "../people.ts";
import type { PagesDeps } from "./page.ts";

/** The part of the page that is not the state of the account. */
export interface Said {
  readonly notice?: string;
  readonly problem?: string;
  /** A key that was just created: the only time it is shown. */
  readonly newKey?: { readonly key: string; readonly name: string };
}

/** The notice of a change, on the page that the browser is redirected to. */
export const NOTICES = {
  limit: "The spend limit is changed.",
  revoked: "The key is revoked. It ends within a second.",
  password: "The password is changed. Other sign-ins have ended.",
  connected: "The account is connected. The provider’s sign-in opens it from now on.",
  disconnected: "It is disconnected. Other sign-ins with a provider have ended.",
  passwordAndKeys:
    "The password is changed. Other sign-ins have ended, and all keys are revoked: they end within a second.",
} as const;

/** A notice, with the cookie by which the browser is known from now on. */
interface Done {
  readonly notice: keyof typeof NOTICES;
  readonly known: string;
}

/** The work of a form: its outcome is a notice, what the page shows, or a refusal. */
export type Change = (
  deps: PagesDeps,
  person: Person,
  form: Form,
  network: string,
) => Promise<keyof typeof NOTICES | Done | Said | PageRefusal>;
