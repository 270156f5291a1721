/** Device login (RFC 8628): a program without a browser gets an API key once a signed-in person has confirmed its code. */
import { LIMITS } from "../limits.ts";
import { unixSeconds } from "../std/clock.ts";
import { randomText } from "../std/ids.ts";
import { printable } from "../std/printable.ts";
import { type SeenClock, seenSeconds } from "../std/seen-clock.ts";
import { StoreDown } from "../store/store.ts";
import { PageRefusal, unavailable } from "./errors.ts";
import { newKey } from "./key.ts";
import type { People, Person } from "./people.ts";
import { isToken, makeToken, sha256 } from "./secret.ts";
import type { AccountStore } from "./store/accounts.ts";
import type { PeopleStore } from "./store/people.ts";

/** Letters without vowels make no words, and none looks like another one or like a digit (RFC 8628, section 6.1). */
const LETTERS = "BCDFGHJKLMNPQRSTVWXZ";
const CODE_CHARS = 8;

export class DeviceLogins {
  constructor(
    private readonly store: {
      readonly accounts: Pick<AccountStore, "mayHaveKeys">;
      readonly people: Pick<PeopleStore, "deviceAdd" | "deviceByUserCode" | "deviceDecide" | "devicePoll">;
    },
    private readonly people: People,
    private readonly clock: SeenClock,
  ) {}

  async begin(asked: { deviceName: string; address: string; network: string }) {
    const refused = await this.people.tried([`device from ${asked.network}`, LIMITS.deviceTriesMax]);
    if (refused) return refused;
    const now = seenSeconds(this.clock);
    const deviceName = [...printable(asked.deviceName).trim()].slice(0, LIMITS.deviceNameCharsMax).join("");
    const [deviceCode, userCode] = [makeToken(), dashed(randomText(LETTERS, CODE_CHARS))];
    const added = await this.store.people.deviceAdd({
      deviceSha256: sha256(deviceCode),
      userCodeSha256: sha256(userCode),
      deviceName: deviceName || "a device without a name",
      address: asked.address,
      createdAt: now,
      expiresAt: now + LIMITS.deviceLoginSeconds,
      intervalSeconds: LIMITS.devicePollSeconds,
    });
    // One of 25 billion codes is hardly taken: the client asks again then.
    return added === "added" ? { deviceCode, userCode } : unavailable();
  }

  /** The device login with this code, to show to the person who decides. Tries are counted per account and per network. */
  async find(person: Person, typed: string, network: string) {
    const userCode = await this.guess(person, typed, network);
    if (userCode instanceof PageRefusal) return userCode;
    const now = seenSeconds(this.clock);
    const login = await this.store.people.deviceByUserCode({ userCodeSha256: sha256(userCode), now });
    if (login instanceof StoreDown) return unavailable();
    return login ? { login, userCode } : CODE_UNKNOWN;
  }

  /** Works once per code. An approval is void once the sign-in that gave it has ended. */
  async decide(person: Person, typed: string, network: string, approve: boolean): Promise<PageRefusal | undefined> {
    const userCode = await this.guess(person, typed, network);
    if (userCode instanceof PageRefusal) return userCode;
    if (approve) {
      const may = await this.store.accounts.mayHaveKeys(person.accountId);
      if (may instanceof StoreDown) return unavailable();
      if (may !== "yes") return new PageRefusal(KEY_REFUSALS[may]);
    }
    const decided = await this.store.people.deviceDecide({
      userCodeSha256: sha256(userCode),
      approve,
      accountId: person.accountId,
      signInSha256: sha256(person.token),
      now: seenSeconds(this.clock),
    });
    if (decided instanceof StoreDown) return unavailable();
    return decided === "decided" ? undefined : CODE_UNKNOWN;
  }

  /** The device's poll. The first poll after the approval gets the whole key, later ones do not. */
  async poll(deviceCode: string) {
    if (!isToken(deviceCode)) return "unknown";
    const { key, record } = newKey(unixSeconds(this.clock));
    const now = seenSeconds(this.clock);
    const outcome = await this.store.people.devicePoll({ deviceSha256: sha256(deviceCode), key: record, now });
    return outcome === "granted" ? { key, publicId: record.publicId } : outcome;
  }

  /** The typed code in its usual form. Every call counts as a try, right or wrong (RFC 8628, section 5.1). */
  private async guess(person: Person, typed: string, network: string): Promise<string | PageRefusal> {
    const refused = await this.people.tried(
      [`code from ${network}`, LIMITS.codeNetworkTriesMax],
      [`code of ${person.accountId}`, LIMITS.codeTriesMax],
    );
    return refused ?? readUserCode(typed) ?? CODE_UNKNOWN;
  }
}

/** Reasons why an account gets no key, as its owner reads them. */
export const KEY_REFUSALS = {
  account_unknown: "The account is gone.",
  payment_required: "The account needs a payment method or credit before a key can be created.",
  too_many: `The account has ${LIMITS.accountKeysMax} keys, the maximum: revoke one first.`,
} as const;

const CODE_UNKNOWN = new PageRefusal(
  "No device is waiting with this code. Compare it with the terminal, or run tendon login again.",
);

/** Case, spaces and punctuation do not matter (RFC 8628, section 6.1). */
function readUserCode(typed: string): string | undefined {
  const letters = typed.toUpperCase().replace(/[^A-Z0-9]/g, "");
  const good = letters.length === CODE_CHARS && [...letters].every((letter) => LETTERS.includes(letter));
  return good ? dashed(letters) : undefined;
}

function dashed(code: string): string {
  return `${code.slice(0, 4)}-${code.slice(4)}`;
}
