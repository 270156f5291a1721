/** What the service and its one client of OAuth agree on (RFC 8628). */

/** The one public client; it has no secret. */
export const CLIENT_ID = "tendon-cli";
export const DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code";
