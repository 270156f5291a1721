/**
 * The one type of failure, and what a row of a table of failures says. Each surface of the interface has a table of its own
 * (`robot.ts`, `llm.ts`, `runs.ts`, `oauth.ts`); the codes of every route stand in `every-route.ts`.
 *
 * Failures of the caller or the world are values, never exceptions; nobody outside of this folder knows a status number.
 * Our own bugs are assertions (`std/assert.ts`).
 */

/** Close codes of a WebSocket (RFC 6455 section 7.4.1): policy, fault of the server, try again later. */
export type CloseCode = 1008 | 1011 | 1013;

type ErrorType = "authentication_error" | "billing_error" | "rate_limit_error" | "api_error" | "invalid_request_error";

interface Facts {
  readonly status: number;
  readonly type: ErrorType;
  /** The code that clients see, where two rows share one. */
  readonly wire?: string;
  /** Repeating the request unchanged cannot help. */
  readonly final?: true;
  /** On a WebSocket the failure ends the connection, with this close code. */
  readonly close?: CloseCode;
  /** No HTTP answer carries it. */
  readonly socketOnly?: true;
}

/** One kind of failure. */
export interface Row extends Facts {
  /** Its name in its table. */
  readonly code: string;
}

export function row(status: number, wire?: string): Facts {
  return { status, type: typeOf(status), ...(wire === undefined ? {} : { wire }) };
}

/** Told to clients that would retry the status by themselves. */
export function final(one: Facts): Facts {
  return { ...one, final: true };
}

export function closes(close: CloseCode, one: Facts): Facts {
  return { ...one, close };
}

export function socketOnly(one: Facts): Facts {
  return { ...one, socketOnly: true };
}

function typeOf(status: number): ErrorType {
  if (status === 401) return "authentication_error";
  if (status === 402) return "billing_error";
  if (status === 429) return "rate_limit_error";
  return status >= 500 ? "api_error" : "invalid_request_error";
}

/** A table: its rows by their names. */
export function table<const T extends Readonly<Record<string, Facts>>>(facts: T): { readonly [K in keyof T]: Row } {
  const rows = Object.entries(facts).map(([code, one]) => [code, { ...one, code }]);
  return Object.fromEntries(rows) as { readonly [K in keyof T]: Row };
}

/** Every code that a client may meet over HTTP, with the statuses that it comes with, in the order of the tables. */
export function wireCodes(...tables: readonly Readonly<Record<string, Row>>[]): { code: string; status: number }[] {
  return tables
    .flatMap((rows) => Object.values(rows))
    .filter(({ socketOnly }) => !socketOnly)
    .map(({ code, status, wire }) => ({ code: wire ?? code, status }));
}

/** What else a reply may carry. */
interface Detail {
  /** The request field at fault, only where one field is. */
  readonly param?: string;
  /** Whole seconds, at least 1. */
  readonly retryAfterSeconds?: number;
  /** For the log only, never for a client. */
  readonly detail?: string;
}

/** A failure of the caller or the world. `message` says what was wrong, what was expected, what to do next. */
export class Failure {
  readonly param: string | undefined;
  readonly retryAfterSeconds: number | undefined;
  readonly detail: string | undefined;

  constructor(
    readonly row: Row,
    readonly message: string,
    detail: Detail = {},
  ) {
    this.param = detail.param;
    this.retryAfterSeconds = detail.retryAfterSeconds;
    this.detail = detail.detail;
  }

  /** The name of its row. */
  get code(): string {
    return this.row.code;
  }

  get status(): number {
    return this.row.status;
  }

  /** Whether the client is told that a repeat of the same request cannot help. */
  get final(): boolean {
    return this.row.final === true;
  }

  /** The close code with which it ends a WebSocket; undefined: it does not end it. */
  get close(): CloseCode | undefined {
    return this.row.close;
  }

  /** The value that a client branches on. */
  get wireCode(): string {
    return this.row.wire ?? this.row.code;
  }

  /** The error object of the specification. */
  body(): { error: { message: string; type: ErrorType; param?: string; code: string } } {
    const error = { message: this.message, type: this.row.type, code: this.wireCode };
    return { error: this.param === undefined ? error : { ...error, param: this.param } };
  }
}
