/** Why a provider gave no answer, and what a client is told about it: one table of statuses, and no text that could be a secret. */

import { LIMITS } from "../../limits.ts";
import { Failure } from "../../std/failure.ts";
import { LLM } from "../errors.ts";

/**
 * - `unavailable`: no connection, a time-out, or a status that may be another one next time.
 * - `rejected`: the provider does not take this request.
 * - `invalid`: what came is no answer, or only a part of one.
 */
type FaultKind = "unavailable" | "rejected" | "invalid";

interface Facts {
  /** The provider's, where it is passed on. */
  readonly status?: number;
  readonly retryAfterSeconds?: number;
  /** What the provider says about it, made safe (`safeText`). */
  readonly said?: string;
}

export class Fault {
  constructor(
    readonly kind: FaultKind,
    /** For the log. */
    readonly detail: string,
    readonly facts: Facts = {},
  ) {}

  failure(): Failure {
    const { status, retryAfterSeconds, said } = this.facts;
    const { detail } = this;
    if (this.kind === "invalid") {
      const message =
        "the provider's answer is invalid or was cut off; nothing was charged, send the request again with a new key";
      return new Failure(LLM.invalid_upstream_response, message, { detail });
    }
    if (this.kind === "rejected") {
      const why = said === undefined ? "" : `, it says: ${said}`;
      const message = `the model's provider rejected the request${why}; nothing was charged, change the request and use a new key`;
      return new Failure(LLM.upstream_rejected, message, { detail, ...(status === undefined ? {} : { status }) });
    }
    const message = "the model's provider is not available; nothing was charged, retry with the same key";
    return new Failure(LLM.upstream_unavailable, message, {
      detail,
      ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
    });
  }
}

/** 4xx that say nothing against the request itself: our key, our address of the provider, its load. */
const UNAVAILABLE: ReadonlySet<number> = new Set([401, 403, 404, 408, 429]);

/** The table of statuses (contract section 4); undefined for 200. */
export function kindOfStatus(status: number): FaultKind | undefined {
  if (status === 200) return undefined;
  if (status >= 500 || UNAVAILABLE.has(status)) return "unavailable";
  return status >= 400 && status < 500 ? "rejected" : "invalid";
}

/** Seconds of a `Retry-After`, which may be a date. */
export function retryAfter(header: string | undefined, nowMs: number): number | undefined {
  if (header === undefined) return undefined;
  const seconds = /^\d+$/.test(header) ? Number(header) : Math.ceil((Date.parse(header) - nowMs) / 1000);
  if (!Number.isFinite(seconds)) return undefined;
  return Math.min(Math.max(seconds, 1), LIMITS.llmRetryAfterSecondsMax);
}

/** Of a provider's text, which may have megabytes: what is looked at. Each pattern below sees no more, so none can be slow. */
const READ_CHARS_MAX = 1_000;
const MASK = "[...]";

/** Words that are masked wherever they stand. */
const PRIVATE: readonly RegExp[] = [
  // Addresses and names of machines.
  /:\/\/|\w@\w|\blocalhost\b/i,
  /\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}/,
  /[\da-f]{0,4}:[\da-f]{0,4}:/i,
  /[\w-]:\d{2,5}(?!\d)/,
  /[a-z_-]\.[\w-]|\w\.[a-z_]/i,
  /(?:host|server|addr|address)["']?[=:]["']?\w/i,
  // Paths; a word like "and/or" is none.
  /\\|(?:^|[^\w.])[~.]{0,2}\/\w|\/[^/]*\//,
  // Keys.
  /(?:^|[^a-z0-9])(?:sk|pk|key|tok|bearer|org|proj|hf|ghp)[-_][\w*-]/i,
  /(?:key|token|secret|password|bearer)["']?[=:]["']?\w/i,
  /[\w+/=-]{24}|\*\*\*/,
];

/** Words before the name of a machine, */
const PLACES = new Set(
  "at host hostname server node backend upstream peer via resolve resolving reach connecting".split(" "),
);
/** and names after them that nobody takes for an ordinary word. */
const MACHINE = /^[a-z][\w-]*(?:-|\d)[\w-]*$/i;

const SECRETS = new Set("bearer token secret password apikey api-key api_key authorization credential".split(" "));
/** Words that follow those and give nothing away. */
const ORDINARY = new Set(
  "a an and are as at authentication authorization be bearer budget by can cannot check context count does exceeded exceeds expected expired for from generation given has have header id ids in index invalid is key length limit limits may mismatch missing must name not of on or please provided rate required scheme sequence should than that the this to token type usage use used value was were window with your".split(
    " ",
  ),
);

/**
 * A provider's sentence as a client may read it: without our key, without addresses, names of machines, paths, and words that may
 * be a secret.
 */
export function safeText(text: string, secret: string | undefined): string {
  const known = secret ? text.replaceAll(secret, MASK) : text;
  const long = known.length > READ_CHARS_MAX;
  const words = known
    .slice(0, READ_CHARS_MAX)
    .replace(/[\p{C}\s]+/gu, " ")
    .split(" ");
  // Half of a word could be half of a secret.
  if (long) words.pop();
  const safe = masked(words.filter((word) => word !== "")).join(" ");
  return long || safe.length > LIMITS.llmSaidCharsMax ? `${safe.slice(0, LIMITS.llmSaidCharsMax)}...` : safe;
}

function masked(words: readonly string[]): string[] {
  const cores: string[] = [];
  return words.map((word, index) => {
    const [, open = "", core = "", close = ""] = /^(["'`([{<]*)(.*?)([)\]}>"'`.,;:!?]*)$/.exec(word) ?? [];
    cores.push(core.toLowerCase());
    const hidden = PRIVATE.some((pattern) => pattern.test(core)) || isGiven(cores, words[index - 1] ?? "");
    return core !== "" && hidden ? `${open}${MASK}${close}` : word;
  });
}

/** Whether the words before the last one say that it is a machine's name or a secret. */
function isGiven(cores: readonly string[], before: string): boolean {
  const [third = "", second = "", first = "", core = ""] = ["", "", "", ...cores].slice(-4);
  if (PLACES.has(first) && MACHINE.test(core)) return true;
  const plain = ORDINARY.has(core) || /^\d{1,6}$/.test(core);
  if (plain) return false;
  if (SECRETS.has(first)) return true;
  if (first === "key") return /\d/.test(core) || second === "api" || before.endsWith(":");
  // "the key provided: abc123"
  const filler = /^(?:is|was|provided|given|value|used)$/.test(first);
  return filler && /\d/.test(core) && [second, third].some((one) => one === "key" || SECRETS.has(one));
}
