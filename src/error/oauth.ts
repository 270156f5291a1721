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
