/**
 * The OAuth routes of the command line's sign-in: device authorization (RFC 8628), token, and revocation (RFC 7009). Their
 * errors have the form of RFC 6749: `{error, error_description}`.
 */
import { CLIENT_ID, DEVICE_GRANT } from "../../account/device-login.ts";
import { keyMatches, keyPublicId } from "../../account/key.ts";
import { Refusal } from "../../account/people.ts";
import { Failure } from "../../error/core.ts";
import { type OauthError, oauthStatus } from "../../error/oauth.ts";
import { ROBOT } from "../../error/robot.ts";
import { LIMITS } from "../../limits.ts";
import { StoreDown } from "../../store/store.ts";
import type { Reply } from "../http/answer.ts";
import { type Form, readForm } from "../http/form.ts";
import { addressOf, baseOf, networkOf } from "../http/origin.ts";
import type { Service } from "../service.ts";

/** `POST /oauth/device_authorization`. */
export async function deviceAuthorization(
  service: Service,
  request: Request,
  peer: string | undefined,
): Promise<Reply> {
  const form = await clientForm(service, request);
  if (typeof form !== "function") return form;
  const address = addressOf(request, peer);
  const asked = { deviceName: form("device_name"), address, network: networkOf(address) };
  const begun = await service.devices.begin(asked);
  if (begun instanceof Refusal) return failed("temporarily_unavailable", begun.text, begun.retryAfterSeconds);
  const page = `${baseOf(request)}/device`;
  return done({
    device_code: begun.deviceCode,
    user_code: begun.userCode,
    verification_uri: page,
    verification_uri_complete: `${page}?user_code=${begun.userCode}`,
    expires_in: LIMITS.deviceLoginSeconds,
    interval: LIMITS.devicePollSeconds,
  });
}

/** `POST /oauth/token`. */
export async function token(service: Service, request: Request): Promise<Reply> {
  const form = await clientForm(service, request);
  if (typeof form !== "function") return form;
  if (form("grant_type") !== DEVICE_GRANT) {
    return failed("unsupported_grant_type", `grant_type is not ${DEVICE_GRANT}, the only one there is`);
  }
  const outcome = await service.devices.poll(form("device_code"));
  if (outcome instanceof StoreDown) return down(service, outcome);
  if (typeof outcome === "object") return done({ access_token: outcome.key, token_type: "Bearer" });
  const [error, description] = POLLED[outcome];
  return failed(error, description);
}

const POLLED = {
  pending: ["authorization_pending", "nobody has confirmed the code yet; ask again after the interval"],
  slow_down: ["slow_down", "asked too soon; the interval is 5 seconds longer from now on"],
  denied: ["access_denied", "the code was refused, or who confirmed it has signed out; begin again"],
  expired: ["expired_token", "nobody confirmed the code in time; begin again"],
  unknown: ["invalid_grant", "this device code is unknown or has given its key already; begin again"],
  account_unknown: ["access_denied", "the account that confirmed it is gone"],
  payment_required: ["access_denied", "the account needs a payment method or credit before a key can be created"],
  too_many: ["access_denied", "the account has as many keys as it may have; revoke one at /account and begin again"],
} as const satisfies Record<string, readonly [OauthError, string]>;

/** `POST /oauth/revoke`: whoever has the key may end it. Also 200 for what is no key of this service. */
export async function revoke(service: Service, request: Request): Promise<Reply> {
  const form = await clientForm(service, request);
  if (typeof form !== "function") return form;
  const key = form("token");
  if (key === "") return failed("invalid_request", "token is missing: the key to revoke");
  const publicId = keyPublicId(key);
  const record = publicId === undefined ? undefined : await service.store.accounts.keyByPublicId(publicId);
  if (record instanceof StoreDown) return down(service, record);
  if (record && keyMatches(key, record.sha256)) {
    const at = Math.floor(service.clock.unixMs() / 1000);
    const revoked = await service.store.accounts.keyRevoke({ publicId: record.publicId, at });
    if (revoked instanceof StoreDown) return down(service, revoked);
    await service.keys.refresh();
  }
  return done({});
}

/** The form, if it is one of our client. */
async function clientForm(service: Service, request: Request): Promise<Form | Reply> {
  const form = await readForm(service, request);
  if (form instanceof Failure) {
    return failed(form.row === ROBOT.engine_unavailable ? "temporarily_unavailable" : "invalid_request", form.message);
  }
  if (form("client_id") === CLIENT_ID) return form;
  return failed("invalid_client", `client_id is not ${CLIENT_ID}, the only client there is`);
}

function done(body: object): Reply {
  return { status: 200, body: JSON.stringify(body), headers: { "cache-control": "no-store" } };
}

function failed(error: OauthError, description: string, afterSeconds = 1): Reply {
  const status = oauthStatus(error);
  const retry: Record<string, string> =
    error === "temporarily_unavailable" ? { "retry-after": String(afterSeconds) } : {};
  const body = JSON.stringify({ error, error_description: description });
  return { status, body, headers: { "cache-control": "no-store", ...retry } };
}

function down(service: Service, { reason }: StoreDown): Reply {
  service.log.error("store down", { reason });
  return failed("temporarily_unavailable", "keys cannot be looked up right now; retry with backoff");
}
