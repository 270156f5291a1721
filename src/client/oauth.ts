/** The client's side of device login (RFC 8628) and of revocation (RFC 7009). */
import { hostname } from "node:os";
import { type Static, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { keyPublicId } from "../account/key.ts";
import { CLIENT_ID, DEVICE_GRANT } from "../account/oauth/protocol.ts";
import { LIMITS } from "../limits.ts";
import { type Clock, sleep } from "../std/clock.ts";
import { textAt } from "../std/json.ts";
import { printable } from "../std/printable.ts";
import { EXIT, Problem } from "../std/problem.ts";
import { errorReply, postForm } from "./http.ts";

const CLIENT = { client_id: CLIENT_ID } as const;
/** What a `slow_down` adds, by RFC 8628. */
const SLOW_DOWN_MS = 5_000;

const text = Type.String({ minLength: 1 });
/** The reply to a device authorization request (RFC 8628, section 3.2). */
const Begun = Type.Object({
  device_code: text,
  user_code: text,
  verification_uri: text,
  verification_uri_complete: Type.Optional(text),
  expires_in: Type.Number(),
  interval: Type.Optional(Type.Number()),
});

/** A login that a person has not confirmed yet; its texts are printable, its interval is within bounds. */
export type PendingLogin = Static<typeof Begun> & { readonly intervalSeconds: number };

/** Begins a login; `device` becomes the name of the key. */
export async function beginLogin(url: string, device: string): Promise<PendingLogin | Problem> {
  const reply = await postForm(url, "/oauth/device_authorization", { ...CLIENT, device_name: device });
  if (reply instanceof Problem) return reply;
  if (!reply.ok) return new Problem(errorReply(url, reply).message, EXIT.failed);
  const { body } = reply;
  if (!Value.Check(Begun, body)) {
    return new Problem(`the service at ${url} answered without a link and a code; is it a tendon service?`);
  }
  const { verification_uri_complete: complete, interval = LIMITS.loginIntervalSecondsDefault } = body;
  return {
    ...body,
    user_code: printable(body.user_code),
    verification_uri: printable(body.verification_uri),
    ...(complete === undefined ? {} : { verification_uri_complete: printable(complete) }),
    intervalSeconds: Math.min(Math.max(interval, LIMITS.loginIntervalSecondsMin), LIMITS.loginIntervalSecondsMax),
  };
}

/** Polls until the person has decided or the code has expired; a service that is down meanwhile does not end it. */
export async function awaitKey(url: string, login: PendingLogin, clock: Clock): Promise<string | Problem> {
  const endMs = clock.monotonicMs() + login.expires_in * 1000;
  let intervalMs = login.intervalSeconds * 1000;
  let pauseMs = intervalMs;
  let last: Outcome = "pending";
  for (;;) {
    const leftMs = endMs - clock.monotonicMs();
    if (leftMs <= 0) return typeof last === "object" && "away" in last ? last.away : expired();
    await sleep(clock, Math.min(pauseMs, leftMs));
    last = await poll(url, login.device_code);
    if (last instanceof Problem) return last;
    if (typeof last === "object" && "key" in last) return last.key;
    if (last === "slow_down") intervalMs += SLOW_DOWN_MS;
    pauseMs =
      typeof last === "object" ? Math.max(intervalMs, Math.min(2 * pauseMs, LIMITS.loginPauseMsMax)) : intervalMs;
  }
}

/** Revokes a key; one that is revoked already is no problem. */
export async function revokeKey(url: string, key: string): Promise<Problem | undefined> {
  const reply = await postForm(url, "/oauth/revoke", { ...CLIENT, token: key, token_type_hint: "access_token" });
  if (reply instanceof Problem) return reply;
  return reply.ok ? undefined : new Problem(errorReply(url, reply).message, EXIT.failed);
}

/** This machine's name as the service takes it. */
export function deviceName(name = hostname()): string {
  const chars = [...printable(name).trim()].slice(0, LIMITS.deviceNameCharsMax);
  return chars.join("") || "unnamed machine";
}

/** `away`: the service is unreachable or overloaded: nothing is decided, the next poll may work. */
type Outcome = { readonly key: string } | { readonly away: Problem } | "pending" | "slow_down" | Problem;

async function poll(url: string, deviceCode: string): Promise<Outcome> {
  const fields = { ...CLIENT, grant_type: DEVICE_GRANT, device_code: deviceCode };
  const reply = await postForm(url, "/oauth/token", fields);
  if (reply instanceof Problem) return { away: reply };
  if (reply.ok) {
    const key = textAt(reply.body, "access_token");
    if (key !== undefined && keyPublicId(key) !== undefined) return { key };
    return new Problem(`the service at ${url} confirmed the login but sent no key; look for it at ${url}/account`);
  }
  switch (textAt(reply.body, "error")) {
    case "authorization_pending":
      return "pending";
    case "slow_down":
      return "slow_down";
    case "access_denied":
      return new Problem(`no key was made: ${printable(textAt(reply.body, "error_description") ?? "it was denied")}`);
    case "expired_token":
      return expired();
    case "invalid_grant":
      return new Problem(
        `the service no longer knows this login; run 'tendon login' again, and if you had confirmed it, revoke at ${url}/account the key that it made`,
      );
  }
  const refused = errorReply(url, reply);
  if (reply.status === 429 || reply.status >= 500) return { away: refused };
  return new Problem(refused.message, EXIT.failed);
}

function expired(): Problem {
  return new Problem("the code expired before it was confirmed; no key was made; run 'tendon login' for another code");
}
