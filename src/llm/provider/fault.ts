/** Why a provider gave no answer, and what a client is told about it: one table of statuses, and no text that could be a secret. */
import { Failure } from "../../error/core.ts";
import { LLM } from "../../error/llm.ts";
import { LIMITS } from "../../limits.ts";

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

/**
 * A provider's sentence as a client may read it: without our key, without addresses, paths, and words that are long enough to be
 * a secret.
 */
export function safeText(text: string, secret: string | undefined): string {
  const known = secret === undefined ? text : text.replaceAll(secret, "[...]");
  const safe = known
    .replace(/\b[a-z][a-z0-9+.-]*:\/\/\S+/gi, "[...]")
    .replace(/\b(?:\d{1,3}\.){3}\d{1,3}\b(?::\d+)?/g, "[...]")
    .replace(/\[?(?:[\da-f]{0,4}:){2,}[\da-f]{0,4}(?:%\w+)?\]?(?::\d+)?/gi, "[...]")
    .replace(/\b[\w-]+:\d{2,5}\b/g, "[...]")
    .replace(/\b[\w-]+(?:\.[\w-]+)+(?::\d+)?(?:\/\S*)?/g, (word) => (/^[\d.]+$/.test(word) ? word : "[...]"))
    .replace(/(?:^|\s)\/\S+/g, " [...]")
    .replace(/\b(?:sk|key|tok|bearer|org|proj)[-_][\w*-]+/gi, "[...]")
    .replace(/[\w+/=-]{24,}/g, "[...]")
    .replace(/[\p{C}\s]+/gu, " ")
    .trim();
  return safe.length > LIMITS.llmSaidCharsMax ? `${safe.slice(0, LIMITS.llmSaidCharsMax)}...` : safe;
}
