/** Device login (RFC 8628): a program without a browser gets a key when a signed-in person has confirmed its code. */
import { LIMITS } from "../limits.ts";
import type { Clock } from "../std/clock.ts";
import type { AccountStore } from "../store/accounts/accounts.ts";
import type { PeopleStore } from "../store/people/people.ts";
import type { DeviceLogin, DevicePoll } from "../store/people/records.ts";
import { StoreDown } from "../store/store.ts";
import { keyDigest, keyPublicId, makeKey } from "./key.ts";
import { type People, type Person, Refusal, unavailable } from "./people.ts";
import { isToken, makeToken, sha256 } from "./secret.ts";

/** The one public client. */
export const CLIENT_ID = "tendon-cli";
export const DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code";

/** Without vowels no word comes out, and no letter looks like another one or like a digit (RFC 8628, section 6.1). */
const LETTERS = "BCDFGHJKLMNPQRSTVWXZ";
const CODE_CHARS = 8;
/** The largest multiple of the number of letters in a byte: bytes from here on would favour some of them. */
const BYTE_LIMIT = 240;
/** Of 25 billion codes the chance that one is taken is small, that three are is none. */
const CODE_TRIES = 3;

export interface Begun {
  readonly deviceCode: string;
  /** Four letters, a dash, four letters. */
  readonly userCode: string;
}

export class DeviceLogins {
  constructor(
    private readonly store: {
      readonly accounts: Pick<AccountStore, "mayHaveKeys">;
      readonly people: Pick<PeopleStore, "deviceAdd" | "deviceByUserCode" | "deviceDecide" | "devicePoll">;
    },
    private readonly people: People,
    private readonly clock: Clock,
  ) {}

  async begin(asked: { deviceName: string; address: string; network: string }): Promise<Begun | Refusal> {
    const refused = await this.people.tried(`device from ${asked.network}`, LIMITS.deviceTriesMax);
    if (refused) return refused;
    const now = this.now();
    for (let tries = 0; tries < CODE_TRIES; tries += 1) {
      const [deviceCode, userCode] = [makeToken(), makeUserCode()];
      const added = await this.store.people.deviceAdd({
        deviceSha256: sha256(deviceCode),
        userCodeSha256: sha256(userCode),
        deviceName:
          [...printable(asked.deviceName)].slice(0, LIMITS.deviceNameCharsMax).join("") || "a device without a name",
        address: asked.address,
        createdAt: now,
        expiresAt: now + LIMITS.deviceLoginSeconds,
        intervalSeconds: LIMITS.devicePollSeconds,
      });
      if (added instanceof StoreDown) return unavailable();
      if (added === "added") return { deviceCode, userCode };
    }
    return unavailable();
  }

  /** What a code stands for, for the person who is to decide. Guesses are counted, per account and per address. */
  async find(
    person: Person,
    typed: string,
    network: string,
  ): Promise<{ login: DeviceLogin; userCode: string } | Refusal> {
    const userCode = await this.guess(person, typed, network);
    if (userCode instanceof Refusal) return userCode;
    const login = await this.store.people.deviceByUserCode({ userCodeSha256: sha256(userCode), now: this.now() });
    if (login instanceof StoreDown) return unavailable();
    return login ? { login, userCode } : codeUnknown();
  }

  /** Once; the approval lasts as long as the sign-in that gave it. */
  async decide(person: Person, typed: string, network: string, approve: boolean): Promise<Refusal | undefined> {
    const userCode = await this.guess(person, typed, network);
    if (userCode instanceof Refusal) return userCode;
    if (approve) {
      const may = await this.store.accounts.mayHaveKeys(person.accountId);
      if (may instanceof StoreDown) return unavailable();
      if (may !== "yes") return new Refusal(KEY_REFUSALS[may]);
    }
    const decided = await this.store.people.deviceDecide({
      userCodeSha256: sha256(userCode),
      approve,
      accountId: person.accountId,
      signInSha256: sha256(person.token),
      now: this.now(),
    });
    if (decided instanceof StoreDown) return unavailable();
    return decided === "decided" ? undefined : codeUnknown();
  }

  /** The device asks how far it is; an approved login gives its key, once, whole. */
  async poll(deviceCode: string): Promise<Exclude<DevicePoll, object> | { readonly key: string } | StoreDown> {
    if (!isToken(deviceCode)) return "unknown";
    const key = makeKey();
    const now = this.now();
    const outcome = await this.store.people.devicePoll({
      deviceSha256: sha256(deviceCode),
      key: { publicId: keyPublicId(key) ?? "", sha256: keyDigest(key), createdAt: now },
      now,
    });
    return typeof outcome === "object" && "accountId" in outcome ? { key } : outcome;
  }

  /** A code, if it can be one. Each is a try, whatever becomes of it (RFC 8628, section 5.1). */
  private async guess(person: Person, typed: string, network: string): Promise<string | Refusal> {
    const refused =
      (await this.people.tried(`code from ${network}`, LIMITS.codeNetworkTriesMax)) ??
      (await this.people.tried(`code of ${person.accountId}`, LIMITS.codeTriesMax));
    return refused ?? readUserCode(typed) ?? codeUnknown();
  }

  private now(): number {
    return Math.floor(this.clock.unixMs() / 1000);
  }
}

/** Why an account gets no key, in words for its person. */
export const KEY_REFUSALS = {
  account_unknown: "The account is gone.",
  payment_required: "The account needs a payment method or credit before a key can be created.",
  too_many: `The account has ${LIMITS.accountKeysMax} keys, as many as it may have: revoke one first.`,
} as const;

function codeUnknown(): Refusal {
  return new Refusal("No device waits with this code. Compare it with the terminal, or run tendon login again.");
}

function makeUserCode(): string {
  let code = "";
  while (code.length < CODE_CHARS) {
    for (const byte of crypto.getRandomValues(new Uint8Array(CODE_CHARS))) {
      if (byte < BYTE_LIMIT && code.length < CODE_CHARS) code += LETTERS.charAt(byte % LETTERS.length);
    }
  }
  return `${code.slice(0, 4)}-${code.slice(4)}`;
}

/** Case, spaces and punctuation do not matter (RFC 8628, section 6.1). */
function readUserCode(typed: string): string | undefined {
  const letters = typed.toUpperCase().replace(/[^A-Z0-9]/g, "");
  const good = letters.length === CODE_CHARS && [...letters].every((letter) => LETTERS.includes(letter));
  return good ? `${letters.slice(0, 4)}-${letters.slice(4)}` : undefined;
}

function printable(text: string): string {
  return text.replace(/\p{C}/gu, " ").trim();
}
