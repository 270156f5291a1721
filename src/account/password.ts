/** Passwords: argon2id, off the event loop, one at a time: a flood of sign-ins takes one core. The queue is bounded, also per network. */
import { LIMITS } from "../limits.ts";
import { Permits } from "../std/quota.ts";

/** As OWASP's Password Storage Cheat Sheet recommends: 19 MiB, two passes, one lane. */
const ARGON2ID = { algorithm: "argon2id", memoryCost: 19_456, timeCost: 2 } as const;

export class Passwords {
  private readonly waiting = new Permits(LIMITS.passwordsWaitingMax, LIMITS.networkPasswordsMax);
  private last: Promise<unknown> = Promise.resolve();
  /** Verified for an e-mail without account, so that the answer takes as long as for one with an account. */
  private nobody: string | undefined;

  /** `busy`: the queue is full. */
  async hash(password: string, network: string): Promise<string | "busy"> {
    return await this.turn(network, () => Bun.password.hash(password, ARGON2ID));
  }

  /** Whether `hash` is the hash of this password; undefined: there is no account, and the answer is false. */
  async matches(password: string, hash: string | undefined, network: string): Promise<boolean | "busy"> {
    return await this.turn(network, async () => {
      this.nobody ??= await Bun.password.hash("nobody has this password", ARGON2ID);
      const right = await Bun.password.verify(password, hash ?? this.nobody);
      return right && hash !== undefined;
    });
  }

  private async turn<T>(network: string, work: () => Promise<T>): Promise<T | "busy"> {
    const leave = this.waiting.take(network);
    if (typeof leave === "string") return "busy";
    const turn = this.last.then(work);
    this.last = turn.catch(() => {});
    try {
      return await turn;
    } finally {
      leave();
    }
  }
}

/** What is wrong with a new password; only its length is checked (NIST SP 800-63B, section 5.1.1.2). */
export function passwordProblem(password: string): string | undefined {
  if ([...password].length < LIMITS.passwordCharsMin) {
    return `The password is too short: it needs at least ${LIMITS.passwordCharsMin} characters.`;
  }
  if (Buffer.byteLength(password) > LIMITS.passwordBytesMax) return "The password is too long.";
  return undefined;
}
