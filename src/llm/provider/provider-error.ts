/** An error that a provider tells inside of an answer that it has begun. */
import { Fault, kindOfStatus, safeText } from "./fault.ts";

/** Codes of the Responses API that say that the same request can succeed another time. */
const PASSING = new Set(["server_error", "rate_limit_exceeded", "overloaded_error", "timeout"]);

/** `error`: the error object, or its text. Some servers give a status as `code`; without any clue the provider is at fault. */
export function providerError(error: unknown, secret: string | undefined): Fault {
  const { code, type, status, message } = Object(error) as Record<string, unknown>;
  const text = typeof error === "string" ? error : message;
  const said = typeof text === "string" ? safeText(text, secret) : undefined;
  const detail = `an error inside the answer: ${typeof code === "string" || typeof code === "number" ? code : "no code"}`;
  const facts = said === undefined ? {} : { said };
  const number = [status, code].find(
    (value): value is number => typeof value === "number" && value >= 400 && value < 600,
  );
  if (number !== undefined) return new Fault(kindOfStatus(number) ?? "invalid", detail, { ...facts, status: number });
  const rejected = (typeof code === "string" && !PASSING.has(code)) || type === "invalid_request_error";
  return rejected ? new Fault("rejected", detail, facts) : new Fault("unavailable", detail, facts);
}
