/**
 * The one type of failure, and the row of a table of failures. Each surface of the interface has its table
 * (`robot.ts`, `llm.ts`, `runs.ts`, `oauth.ts`); the codes of every route are in `every-route.ts`. The OpenAPI document and
 * the lists of errors on the pages are generated from these tables.
 *
 * Failures of the caller or the world are values, never exceptions; no code outside of this folder knows an error's status.
 * Our own bugs are assertions (`std/assert.ts`).
 */

/** Close codes of a WebSocket (RFC 6455 section 7.4.1): policy, fault of the server, try again later. */
export type CloseCode = 1008 | 1011 | 1013;

type ErrorType = "authentication_error" | "billing_error" | "rate_limit_error" | "api_error" | "invalid_request_error";

/** What a row says besides its status. It is answered only where it has a text: `http`, `socket`, `event`. */
interface Facts {
  /** Its meaning as an HTTP answer. */
  readonly http?: string;
  /** For a WebSocket: the group of the page's list, and the meaning where it is not the one of HTTP. */
  readonly socket?: readonly [group: string, meaning?: string];
  /** Its meaning as the last event of a stream, after the HTTP status has been sent. */
  readonly event?: string;
  /** The code that clients see, where it is not the name of the row. */
  readonly wire?: string;
  /** Repeating the request unchanged cannot help: the answer has `x-should-retry: false`. */
  readonly final?: true;
  /** The close code with which the failure ends a WebSocket. */
  readonly close?: CloseCode;
  /** `Retry-After` of an answer that names no other time. */
  readonly retryAfterSeconds?: number;
  /** The failure names its own status, out of these: that of another server is passed on. */
  readonly statuses?: "4XX";
  /** The type, where it does not follow from the status. */
  readonly type?: ErrorType;
}

interface Unnamed extends Facts {
  readonly status: number;
  readonly type: ErrorType;
}

/** One kind of failure. */
export interface Row extends Unnamed {
  /** Its name in its table. */
  readonly code: string;
  /** The value that a client branches on. */
  readonly wire: string;
}

/** The rows of one surface by their names, in the order in which its specification checks. */
export type Table = Readonly<Record<string, Row>>;

/** The rows with which a surface answers where a request fails before its handler. */
export interface Answers {
  /** The body has more bytes than the route takes. */
  readonly tooLarge: Row;
  /** The body is not of the form that the route takes, or did not arrive whole in time. */
  readonly malformed: Row;
  /** Too many bodies are in memory, or the service is shutting down. */
  readonly unavailable: Row;
}

export function row(status: number, facts: Facts): Unnamed {
  return { status, type: typeOf(status), ...facts };
}

function typeOf(status: number): ErrorType {
  if (status === 401) return "authentication_error";
  if (status === 402) return "billing_error";
  if (status === 429) return "rate_limit_error";
  return status >= 500 ? "api_error" : "invalid_request_error";
}

export function table<const T extends Readonly<Record<string, Unnamed>>>(facts: T): { readonly [K in keyof T]: Row } {
  const rows = Object.entries(facts).map(([code, one]) => [code, { wire: code, ...one, code }]);
  return Object.fromEntries(rows) as { readonly [K in keyof T]: Row };
}

/** What else a reply may carry. */
interface Detail {
  /** The request field at fault, only where one field is. */
  readonly param?: string | undefined;
  /** Whole seconds, at least 1. */
  readonly retryAfterSeconds?: number | undefined;
  /** A text for the log only, never for a client. */
  readonly detail?: string;
  /** The code, for a row that has several. */
  readonly status?: number | undefined;
}

/** A failure of the caller or the world. `message` says what was wrong, what was expected, what to do next. */
export class Failure {
  readonly param: string | undefined;
  readonly retryAfterSeconds: number | undefined;
  readonly detail: string | undefined;
  readonly status: number;

  constructor(
    readonly row: Row,
    readonly message: string,
    detail: Detail = {},
  ) {
    this.param = detail.param;
    this.retryAfterSeconds = detail.retryAfterSeconds;
    this.detail = detail.detail;
    this.status = detail.status ?? row.status;
  }

  /** The name of its row. */
  get code(): string {
    return this.row.code;
  }

  /** The close code with which it ends a WebSocket; undefined: it does not end it. */
  get close(): CloseCode | undefined {
    return this.row.close;
  }

  /** The value that a client branches on. */
  get wireCode(): string {
    return this.row.wire;
  }

  /** The error object of the specification. */
  body(): { error: { message: string; type: ErrorType; param?: string; code: string } } {
    const error = { message: this.message, type: this.row.type, code: this.wireCode };
    return { error: this.param === undefined ? error : { ...error, param: this.param } };
  }
}
