/** E-mail addresses as accounts have them: in lower case, roughly checked. */
import { LIMITS } from "../limits.ts";

/** The address in lower case; undefined if it cannot be one. */
export function readEmail(text: string): string | undefined {
  const email = text.trim().toLowerCase();
  const good = email.length <= LIMITS.emailCharsMax && /^[^@\s\p{C}]+@[^@\s\p{C}]+$/u.test(email);
  return good ? email : undefined;
}
