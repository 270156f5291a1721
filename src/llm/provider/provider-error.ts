/** An error that a provider tells inside of an answer that it has begun. */
import { Fault, kindOfStatus, safeText } from "./fault.ts";

/** What says nothing against the request: the provider's own trouble, or its operator's key, money and models. */
const PASSING =
  /server|overload|(?:^|[^a-z])rate|rate.?limit|time.?out|timed.?out|authenti|permission|api.?key|quota|billing|internal|unavailable|model_not_found/i;

/** Of a code or type that is looked at, */
const WORD_CHARS_MAX = 128;
/** and of a code in the log. */
const CODE_CHARS_MAX = 40;

/** `error`: the error object, or its text. Some servers give a status as `code`; without any clue the provider is at fault. */
export function providerError(error: unknown, secret: string | undefined): Fault {
  const { code, type, status, message } = Object(error) as Record<string, unknown>;
  const text = typeof error === "string" ? error : message;
  const said = typeof text === "string" ? safeText(text, secret) : undefined;
  const detail = `an error inside the answer: ${shown(code, secret)}`;
  const facts = said === undefined ? {} : { said };
  const number = [status, code].map(statusOf).find((one) => one !== undefined);
  if (number !== undefined) return new Fault(kindOfStatus(number) ?? "invalid", detail, { ...facts, status: number });
  const passing = [code, type].some((word) => typeof word === "string" && PASSING.test(word.slice(0, WORD_CHARS_MAX)));
  const rejected = !passing && (typeof code === "string" || type === "invalid_request_error");
  return new Fault(rejected ? "rejected" : "unavailable", detail, facts);
}

function shown(code: unknown, secret: string | undefined): string {
  if (typeof code === "number") return `${code}`;
  return typeof code === "string" ? safeText(code, secret).slice(0, CODE_CHARS_MAX) : "no code";
}

function statusOf(value: unknown): number | undefined {
  const number = typeof value === "string" && /^\d{3}$/.test(value) ? Number(value) : value;
  return typeof number === "number" && number >= 400 && number < 600 ? number : undefined;
}
