/** Assertions: our own bugs end the work at once instead of travelling on. */

/** Throws when `condition` is false; `message` names the rule that our own code broke. */
export function assert(condition: boolean, message: string): asserts condition {
  if (!condition) throw new Error(`assertion failed: ${message}`);
}

/** The value, or an assertion failure when it is null or undefined. */
export function present<T>(value: T | null | undefined, what: string): T {
  if (value === null || value === undefined) throw new Error(`assertion failed: ${what} is missing`);
  return value;
}
