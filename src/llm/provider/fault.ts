/** Faults of a provider, and the error that a client gets for each. Its own words go to the log alone. */
import { LIMITS } from "../../limits.ts";
import { Failure } from "../../std/failure.ts";
import { parseJson } from "../../std/json.ts";
import { printable } from "../../std/printable.ts";
import { LLM } from "../errors.ts";

/**
 * - `unavailable`: no connection, a time-out, or a status that may be another one next time.
 * - `rejected`: the provider does not take this request.
 * - `invalid`: what came is no answer, or only a part of one.
 */
type FaultKind = "unavailable" | "rejected" | "invalid";

interface Facts {
  /** The provider's, where it is passed on. */
  readonly status?: number | undefined;
  /** The field of the request that the provider names. */
  readonly param?: string | undefined;
  readonly retryAfterSeconds?: number | undefined;
}

/** Characters of a provider's words in the log. */
const DETAIL_CHARS_MAX = 300;

export class Fault {
  constructor(
    readonly kind: FaultKind,
    /** For the log. */
    readonly detail: string,
    readonly facts: Facts = {},
  ) {}

  /** The fault as it may be logged: on one line, and without the provider's key, which its words may repeat. */
  logged(key: string | undefined): Fault {
    const known = key ? this.detail.replaceAll(key, "[...]") : this.detail;
    const { param } = this.facts;
    const named = key && param?.includes(key) ? undefined : param;
    return new Fault(this.kind, printable(known.slice(0, DETAIL_CHARS_MAX)), { ...this.facts, param: named });
  }

  failure(): Failure {
    const { retryAfterSeconds, ...facts } = this.facts;
    const { detail } = this;
    if (this.kind === "invalid") {
      const message =
        "the provider's answer is invalid or was cut off; nothing was charged, send the request again with a new key";
      return new Failure(LLM.invalid_upstream_response, message, { detail });
    }
    if (this.kind === "rejected") {
      const message =
        "the model's provider rejected the request; nothing was charged, change the request and use a new key";
      return new Failure(LLM.upstream_rejected, message, { detail, ...facts });
    }
    const message = "the model's provider is not available; nothing was charged, retry with the same key";
    return new Failure(LLM.upstream_unavailable, message, { detail, retryAfterSeconds });
  }
}

/** Statuses of a request that the provider does not take. Other 4xx are its operator's: key, money, address, load. */
const REJECTED: ReadonlySet<number> = new Set([400, 409, 413, 415, 422, 451]);

/** The table of statuses (contract section 4); undefined for 200. */
export function kindOfStatus(status: number): FaultKind | undefined {
  if (status === 200) return undefined;
  if (REJECTED.has(status)) return "rejected";
  return status >= 400 ? "unavailable" : "invalid";
}

/** What comes with a status that refuses. */
interface RefusedAnswer {
  readonly status: number;
  /** The field of its head. */
  readonly retryAfter: string | null;
  /** The body; undefined: it is none that could be read. */
  readonly text: string | undefined;
}

export function refusal(kind: FaultKind, { status, retryAfter, text }: RefusedAnswer, nowMs: number): Fault {
  const { said, param } = text === undefined ? {} : errorOf(text);
  return new Fault(kind, `status ${status}${said === undefined ? "" : `: ${said}`}`, {
    status,
    param: paramOf(param),
    retryAfterSeconds: secondsOf(retryAfter, nowMs),
  });
}

/** The message and the field of an error object, in the forms that servers have for it. */
function errorOf(body: string): { readonly said?: string | undefined; readonly param?: unknown } {
  const { error, message } = Object(parseJson(body)) as { error?: unknown; message?: unknown };
  const { message: inner, param } = Object(error) as { message?: unknown; param?: unknown };
  const said = typeof error === "string" ? error : (inner ?? message);
  return { param, said: typeof said === "string" ? said : undefined };
}

/** A field's name alone: anything else would be the provider's words. */
function paramOf(param: unknown): string | undefined {
  return typeof param === "string" && /^[A-Za-z_][\w.[\]-]{0,127}$/.test(param) ? param : undefined;
}

/** Seconds of a `Retry-After`, which may be a date. */
function secondsOf(header: string | null, nowMs: number): number | undefined {
  if (header === null) return undefined;
  const seconds = /^\d+$/.test(header) ? Number(header) : Math.ceil((Date.parse(header) - nowMs) / 1000);
  if (!Number.isFinite(seconds)) return undefined;
  return Math.min(Math.max(seconds, 1), LIMITS.llmRetryAfterSecondsMax);
}

/** What says nothing against the request: the provider's own trouble, or its operator's key, money and models. */
const PASSING =
  /server|overload|insufficient|payment|(?:^|[^a-z])rate|rate.?limit|time.?out|timed.?out|authenti|permission|api.?key|quota|billing|internal|unavailable|model_not_found/i;

/** Characters of a code or type that are read. */
const WORD_CHARS_MAX = 128;
/** `error`: the error object, or its text. Some servers give a status as `code`; without any clue the provider is at fault. */
export function providerError(error: unknown): Fault {
  const { code, type, status, message, param } = Object(error) as Record<string, unknown>;
  const text = typeof error === "string" ? error : message;
  const detail = `an error inside the answer: ${shown(code)}${typeof text === "string" ? `: ${text}` : ""}`;
  const number = [status, code].map(statusOf).find((one) => one !== undefined);
  const facts = { status: number, param: paramOf(param) };
  if (number !== undefined) return new Fault(kindOfStatus(number) ?? "invalid", detail, facts);
  const passing = [code, type].some((word) => typeof word === "string" && PASSING.test(word.slice(0, WORD_CHARS_MAX)));
  const rejected = !passing && (typeof code === "string" || type === "invalid_request_error");
  return new Fault(rejected ? "rejected" : "unavailable", detail, facts);
}

function shown(code: unknown): string {
  return typeof code === "number" || typeof code === "string" ? `code ${code}` : "no code";
}

function statusOf(value: unknown): number | undefined {
  const number = typeof value === "string" && /^\d{3}$/.test(value) ? Number(value) : value;
  return typeof number === "number" && number >= 400 && number < 600 ? number : undefined;
}
