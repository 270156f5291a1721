/** E-mail addresses as names of accounts: lower case, of a form that can be one. */
import { LIMITS } from "../limits.ts";

/** The address in lower case; undefined where it cannot be one. */
export function readEmail(text: string): string | undefined {
  const email = text.trim().toLowerCase();
  const good = email.length <= LIMITS.emailCharsMax && /^[^@\s\p{C}]+@[^@\s\p{C}]+$/u.test(email);
  return good ? email : undefined;
}
