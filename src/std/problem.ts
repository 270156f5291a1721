/** Problems of the machine or its operator, and the exit codes of the command line. */

/** Exit codes of the command line (contract section 6). */
export const EXIT = { done: 0, failed: 1, usage: 2, notSignedIn: 3, unreachable: 4 } as const;

/**
 * A problem of the machine or its operator, met at start or by a command: a wrong flag, a corrupt bundle, a taken port.
 * `message` says what was wrong, what was expected and what to do next; it may name paths, so it never goes to a client.
 */
export class Problem {
  constructor(
    readonly message: string,
    readonly exit: number = EXIT.failed,
  ) {}
}
