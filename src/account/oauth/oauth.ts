/**
 * The OAuth routes of the command line's sign-in: device authorization (RFC 8628), token, and revocation (RFC 7009). Their
 * errors have the form of RFC 6749: `{error, error_description}`.
 */
import { type Form, form } from "../../http/body-rules.ts";
import { type Call, type KeyRule, type Reply, route } from "../../http/route.ts";
import type { Surface } from "../../http/surface.ts";
import { LIMITS } from "../../limits.ts";
import { type Clock, unixSeconds } from "../../std/clock.ts";
import { Failure, type Row } from "../../std/failure.ts";
import type { Allowance } from "../../std/quota.ts";
import { StoreDown } from "../../store/store.ts";
import type { DeviceLogins } from "../device-login.ts";
import { PageRefusal } from "../errors.ts";
import { keyMatches, keyPublicId } from "../key.ts";
import type { Keys } from "../keys.ts";
import type { AccountStore } from "../store/accounts.ts";
import { OAUTH_SCHEMAS, OPERATIONS } from "./operations.ts";
import { CLIENT_ID, DEVICE_GRANT, OAUTH, OAUTH_ANSWERS } from "./protocol.ts";

export interface OauthDeps {
  readonly clock: Clock;
  readonly store: { readonly accounts: Pick<AccountStore, "keyByPublicId" | "keyRevoke"> };
  readonly keys: Pick<Keys, "prove" | "refresh">;
  readonly deviceLogins: Pick<DeviceLogins, "begin" | "poll">;
  /** Requests by the network that they come from. */
  readonly tries: Allowance;
}

type FormCall = Call<undefined, Form>;

export function oauth(deps: OauthDeps): Surface {
  const post = (
    name: keyof typeof OPERATIONS,
    path: string,
    handle: (deps: OauthDeps, call: FormCall) => Promise<Reply | Failure>,
    ...failures: (keyof typeof OAUTH)[]
  ) => {
    const tooMany = name === "token" ? OAUTH.slow_down : OAUTH.rate_limited;
    return route({
      method: "POST",
      path,
      name: "oauth",
      key: bounded(deps, tooMany),
      body: form(LIMITS.formBytesMax, { once: true }),
      failures: [OAUTH.invalid_client, tooMany, ...failures.map((code) => OAUTH[code])],
      operation: OPERATIONS[name],
      handle: async (call) => foreignClient(call.body) ?? (await handle(deps, call)),
    });
  };
  return {
    tag: "Sign-in",
    answers: OAUTH_ANSWERS,
    failureForm: { table: OAUTH, write: failed, schema: "OauthFailure" },
    routes: [
      post("deviceAuthorization", "/oauth/device_authorization", deviceAuthorization),
      post("token", "/oauth/token", token, "unsupported_grant_type", ...Object.values(POLLED).map(([error]) => error)),
      post("revoke", "/oauth/revoke", revoke),
    ],
    schemas: OAUTH_SCHEMAS,
  };
}

/** None of these routes has a key: the requests of a network are bounded before a body is read and before the store is asked. */
function bounded({ tries }: OauthDeps, row: Row): KeyRule<undefined> {
  const find: KeyRule<undefined>["find"] = async (_, { origin }) => {
    const retryAfterSeconds = tries.take(origin.network);
    if (retryAfterSeconds === undefined) return undefined;
    const message = `too many requests came from this address; retry after ${retryAfterSeconds} s`;
    return new Failure(row, message, { retryAfterSeconds, status: OAUTH.rate_limited.status });
  };
  return { needed: false, find };
}

async function deviceAuthorization({ deviceLogins }: OauthDeps, call: FormCall): Promise<Reply | Failure> {
  const { origin, body } = call;
  const { address, network } = origin;
  const begun = await deviceLogins.begin({ deviceName: body("device_name"), address, network });
  if (begun instanceof PageRefusal) {
    const { text, retryAfterSeconds = 1 } = begun;
    return new Failure(OAUTH.temporarily_unavailable, text, { retryAfterSeconds });
  }
  const page = `${origin.base}/device`;
  return answer({
    device_code: begun.deviceCode,
    user_code: begun.userCode,
    verification_uri: page,
    verification_uri_complete: `${page}?user_code=${begun.userCode}`,
    expires_in: LIMITS.deviceLoginSeconds,
    interval: LIMITS.devicePollSeconds,
  });
}

async function token({ deviceLogins, keys }: OauthDeps, { body }: FormCall): Promise<Reply | Failure> {
  const without = missing(body, "grant_type", DEVICE_GRANT);
  if (without) return without;
  if (body("grant_type") !== DEVICE_GRANT) {
    return new Failure(OAUTH.unsupported_grant_type, `grant_type is not ${DEVICE_GRANT}, the only one there is`);
  }
  const withoutCode = missing(body, "device_code", "what /oauth/device_authorization answered");
  if (withoutCode) return withoutCode;
  const outcome = await deviceLogins.poll(body("device_code"));
  if (outcome instanceof StoreDown) return down(outcome);
  if (typeof outcome === "object") {
    keys.prove(outcome.publicId);
    return answer({ access_token: outcome.key, token_type: "Bearer" });
  }
  const [error, description] = POLLED[outcome];
  return new Failure(OAUTH[error], description);
}

const POLLED = {
  pending: ["authorization_pending", "nobody has confirmed the code yet; ask again after the interval"],
  slow_down: ["slow_down", "asked too soon; the interval is 5 seconds longer from now on"],
  denied: ["access_denied", "the code was refused, or the person who confirmed it has signed out; begin again"],
  expired: ["expired_token", "nobody confirmed the code in time; begin again"],
  unknown: ["invalid_grant", "this device code is unknown or has given its key already; begin again"],
  account_unknown: ["access_denied", "the account that confirmed it is gone"],
  payment_required: ["access_denied", "the account needs a payment method or credit before a key can be created"],
  too_many: ["access_denied", "the account has the maximum number of keys; revoke one at /account and begin again"],
} as const satisfies Record<string, readonly [keyof typeof OAUTH, string]>;

/** Everyone who has the key may end it. The answer is 200 also for what is not a key of this service. */
async function revoke({ clock, store, keys }: OauthDeps, { body }: FormCall): Promise<Reply | Failure> {
  const without = missing(body, "token", "the key to revoke");
  if (without) return without;
  const key = body("token");
  const publicId = keyPublicId(key);
  const record = publicId === undefined ? undefined : await store.accounts.keyByPublicId(publicId);
  if (record instanceof StoreDown) return down(record);
  if (record && keyMatches(key, record.sha256)) {
    const revoked = await store.accounts.keyRevoke({ publicId: record.publicId, at: unixSeconds(clock) });
    if (revoked instanceof StoreDown) return down(revoked);
    await keys.refresh();
  }
  return answer({});
}

/** A parameter without a value counts as one that is not sent (RFC 6749, section 3.2). */
function missing(body: Form, name: string, expected: string): Failure | undefined {
  if (body(name) !== "") return undefined;
  return new Failure(OAUTH.invalid_request, `${name} is missing; expected ${expected}`);
}

function foreignClient(body: Form): Failure | undefined {
  const without = missing(body, "client_id", CLIENT_ID);
  if (without || body("client_id") === CLIENT_ID) return without;
  return new Failure(OAUTH.invalid_client, `client_id is not ${CLIENT_ID}, the only client there is`);
}

function answer(body: object, status = 200): Reply {
  return { status, body: JSON.stringify(body), headers: { "cache-control": "no-store" } };
}

function failed({ row, status, message }: Failure): Reply {
  return answer({ error: row.code, error_description: message }, status);
}

function down({ reason }: StoreDown): Failure {
  const message = "keys cannot be looked up right now; retry with backoff";
  return new Failure(OAUTH.temporarily_unavailable, message, { detail: `store: ${reason}` });
}
