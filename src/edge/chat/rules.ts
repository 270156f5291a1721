/** Rules of single fields that several checks or transports share. */
import { type Code, Failure } from "../../error.ts";
import { LIMITS } from "../../limits.ts";

export const observationIdPattern = new RegExp(`^[A-Za-z0-9._:-]{1,${LIMITS.observationIdCharsMax}}$`);

/** Unicode scalar values outside the general categories C*, counted in code points, without white space at either end. */
export const sessionIdPattern = new RegExp(
  `^[^\\p{C}\\s](?:\\P{C}{0,${LIMITS.sessionIdCharsMax - 2}}[^\\p{C}\\s])?$`,
  "u",
);

export function isSessionId(value: unknown): value is string {
  return typeof value === "string" && sessionIdPattern.test(value);
}

/** An optional whole number from 1 to `max`. */
export function integerInRange(
  draft: { optional(name: string): unknown },
  param: string,
  max: number,
  codes: { readonly invalid: Code; readonly outOfRange: Code },
): Failure | undefined {
  const value = draft.optional(param);
  if (value === undefined) return undefined;
  if (!Number.isInteger(value)) return new Failure(codes.invalid, `${param} must be a whole number`, { param });
  if (Number(value) >= 1 && Number(value) <= max) return undefined;
  return new Failure(codes.outOfRange, `${param} is ${value}, allowed is 1 to ${max}`, { param });
}
