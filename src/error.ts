/**
 * The table of failures: what the caller or the world did wrong, and how each transport says so.
 *
 * Failures are values (`Failure`), never exceptions; nobody else in the project knows a status number.
 * Our own bugs are assertions (`std/assert.ts`).
 */

interface Row {
  readonly status: number;
  /** The code that clients see, where two rows share one. */
  readonly wire?: string;
  /** Repeating the request unchanged cannot help. */
  readonly final?: true;
  /** On a WebSocket the failure ends the connection, with this close code. */
  readonly close?: CloseCode;
  /** No HTTP answer carries it. */
  readonly socketOnly?: true;
  readonly type: "authentication_error" | "billing_error" | "rate_limit_error" | "api_error" | "invalid_request_error";
}

/** Policy (RFC 6455 section 7.4.1), fault of the server, come again. */
export type CloseCode = 1008 | 1011 | 1013;

function row(status: number, wire?: string): Row {
  return { status, type: typeOf(status), ...(wire === undefined ? {} : { wire }) };
}

/** Told to clients that would retry the status by themselves. */
function final(one: Row): Row {
  return { ...one, final: true };
}

function closes(close: CloseCode, one: Row): Row {
  return { ...one, close };
}

function socketOnly(one: Row): Row {
  return { ...one, socketOnly: true };
}

function typeOf(status: number): Row["type"] {
  if (status === 401) return "authentication_error";
  if (status === 402) return "billing_error";
  if (status === 429) return "rate_limit_error";
  return status >= 500 ? "api_error" : "invalid_request_error";
}

/** Codes in the order of the specification's tables: every route first, then the robot route's order of checks. */
const TABLE = {
  not_found: row(404),
  missing_api_key: closes(1008, row(401)),
  invalid_api_key: closes(1008, row(401)),
  payment_required: closes(1008, final(row(402))),
  insufficient_credit: closes(1008, final(row(402))),
  spend_limit_exceeded: closes(1008, { ...final(row(429)), type: "billing_error" }),
  auth_unavailable: closes(1008, row(503)),
  billing_unavailable: closes(1008, row(503)),
  metering_unavailable: closes(1008, row(503)),
  /** A fault of our own; what it was stands in the log under the request's id. */
  internal_error: closes(1011, row(500)),

  request_too_large: row(413),
  invalid_json: socketOnly(row(400)),
  invalid_body: row(400),
  type_missing: socketOnly(row(400)),
  unknown_type: socketOnly(row(400)),
  message_too_large: socketOnly(row(413)),
  /** What waits on a socket is more than may. */
  socket_overflow: socketOnly(closes(1008, row(413, "message_too_large"))),
  session_open: socketOnly(row(400)),
  invalid_frame: socketOnly(row(400)),
  invalid_camera: socketOnly(row(400)),
  too_many_observations: socketOnly(closes(1008, row(429))),
  engine_protocol_error: socketOnly(closes(1011, row(500))),
  model_missing: closes(1008, row(400)),
  model_not_found: closes(1008, row(400)),
  messages_missing: row(400),
  no_user_message: row(400),
  invalid_content: row(400),
  invalid_content_part: row(400),
  invalid_image_url: row(400),
  unsupported_image_format: row(400),
  image_too_large: row(413),
  instruction_missing: row(400),
  instruction_too_long: row(400),
  invalid_parameter: row(400),
  handoff_unavailable: row(400),
  session_missing: row(400),
  invalid_session_id: row(400),
  state_missing: row(400),
  state_shape_mismatch: row(400),
  action_horizon_invalid: row(400),
  action_horizon_out_of_range: row(400),
  num_inference_steps_invalid: row(400),
  num_inference_steps_out_of_range: row(400),
  invalid_expected_step: row(400),
  invalid_observation_id: closes(1008, row(400)),

  idempotency_conflict: closes(1008, final(row(409))),
  /** It runs now. */
  observation_pending: closes(1008, row(409, "observation_outcome_unknown")),
  /** It ran, and its result is gone or not known to be kept. */
  observation_lost: closes(1008, row(503, "observation_outcome_unknown")),

  session_expired: closes(1008, row(410)),
  session_busy: closes(1008, row(409)),
  instruction_changed: row(400),
  session_step_conflict: row(409),
  image_count_mismatch: row(400),
  invalid_image: row(400),

  no_replica_free: closes(1008, row(429)),
  model_failure: closes(1011, row(500)),
  engine_unavailable: closes(1011, row(503)),
} as const satisfies Record<string, Row>;

/** A row of the table. */
export type Code = keyof typeof TABLE;

/** Every code that a client may meet over HTTP, with the statuses that it comes with, in the order of the table. */
export function wireCodes(): { code: string; status: number }[] {
  return Object.entries<Row>(TABLE)
    .filter(([, { socketOnly }]) => !socketOnly)
    .map(([code, { status, wire }]) => ({ code: wire ?? code, status }));
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
    readonly code: Code,
    readonly message: string,
    detail: Detail = {},
  ) {
    this.param = detail.param;
    this.retryAfterSeconds = detail.retryAfterSeconds;
    this.detail = detail.detail;
  }

  get status(): number {
    return TABLE[this.code].status;
  }

  /** Whether a repeat of the same request is told not to be tried. */
  get final(): boolean {
    const { final }: Row = TABLE[this.code];
    return final === true;
  }

  /** How it ends a WebSocket; undefined: it does not. */
  get close(): CloseCode | undefined {
    const { close }: Row = TABLE[this.code];
    return close;
  }

  /** The value that a client branches on. */
  get wireCode(): string {
    const { wire }: Row = TABLE[this.code];
    return wire ?? this.code;
  }

  /** The error object of the specification. */
  body(): { error: { message: string; type: Row["type"]; param?: string; code: string } } {
    const error = { message: this.message, type: TABLE[this.code].type, code: this.wireCode };
    return { error: this.param === undefined ? error : { ...error, param: this.param } };
  }
}

/** Errors of the OAuth routes (RFC 6749 section 5.2, RFC 8628 section 3.5, RFC 7009 section 2.2.1) with their statuses. */
const OAUTH = {
  invalid_request: 400,
  invalid_client: 401,
  invalid_grant: 400,
  unsupported_grant_type: 400,
  authorization_pending: 400,
  slow_down: 400,
  access_denied: 400,
  expired_token: 400,
  temporarily_unavailable: 503,
} as const;

export type OauthError = keyof typeof OAUTH;

export function oauthStatus(error: OauthError): number {
  return OAUTH[error];
}

/** Statuses of pages for people. */
export const PAGE = {
  shown: 200,
  elsewhere: 303,
  signInFailed: 401,
  forbidden: 403,
  notFound: 404,
  tooLarge: 413,
  refused: 422,
  tooMany: 429,
  unavailable: 503,
} as const;

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
