/** Passwords: argon2id off the event loop, one at a time, so that a flood of sign-ins takes one core. Each network has a share of the queue. */
import { LIMITS } from "../limits.ts";
import { Permits } from "../std/quota.ts";
import { PageRefusal } from "./errors.ts";

/** The recommendation of OWASP's Password Storage Cheat Sheet: 19 MiB, two passes, one lane. */
const ARGON2ID = { algorithm: "argon2id", memoryCost: 19_456, timeCost: 2 } as const;

export class Passwords {
  private readonly waiting = new Permits(LIMITS.passwordsWaitingMax, LIMITS.networkPasswordsMax);
  private last: Promise<unknown> = Promise.resolve();
  /** The hash that is verified for an e-mail without account, so that the answer takes as long as for one with an account. */
  private decoy: string | undefined;

  /** `busy`: the queue is full. */
  async hash(password: string, network: string): Promise<string | "busy"> {
    return await this.turn(network, () => Bun.password.hash(password, ARGON2ID));
  }

  /** An undefined `hash` is that of no account: the answer is false. */
  async matches(password: string, hash: string | undefined, network: string): Promise<boolean | "busy"> {
    return await this.turn(network, async () => {
      this.decoy ??= await Bun.password.hash("nobody has this password", ARGON2ID);
      const right = await Bun.password.verify(password, hash ?? this.decoy);
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

/** Only the length of a new password is checked (NIST SP 800-63B, section 5.1.1.2). */
export function passwordProblem(password: string): PageRefusal | undefined {
  const { passwordCharsMin: min, passwordBytesMax: max } = LIMITS;
  if ([...password].length < min)
    return new PageRefusal(`The password is too short: it needs at least ${min} characters.`);
  if (Buffer.byteLength(password) > max) return new PageRefusal(`The password is too long: it may have ${max} bytes.`);
  return undefined;
}
