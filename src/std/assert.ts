/** Assertions: a bug of ours throws where it is noticed. */

/** Throws when `condition` is false; `message` is the rule that must hold. */
export function assert(condition: boolean, message: string): asserts condition {
  if (!condition) throw new Error(`assertion failed: ${message}`);
}

/** The value, or an assertion failure when it is null or undefined. */
export function present<T>(value: T | null | undefined, what: string): T {
  if (value === null || value === undefined) throw new Error(`assertion failed: ${what} is missing`);
  return value;
}
