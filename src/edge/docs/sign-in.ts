/** The OAuth routes in words. */
import { Type } from "@sinclair/typebox";
import { CLIENT_ID, DEVICE_GRANT } from "../../account/oauth-client.ts";
import { oauthStatus } from "../../error/oauth.ts";
import { LIMITS } from "../../limits.ts";
import { headers } from "./headers.ts";
import { OAUTH_MEANINGS } from "./meanings.ts";
import { json, OPEN, type Operation, type Response } from "./parts.ts";

const clientId = Type.Literal(CLIENT_ID, { description: "The only client there is; it has no secret." });

/** A body as forms send it. */
function form(properties: Parameters<typeof Type.Object>[0]): NonNullable<Operation["requestBody"]> {
  return {
    description: `A form of at most ${LIMITS.formBytesMax / 1024} KiB.`,
    required: true,
    content: { "application/x-www-form-urlencoded": { schema: Type.Object({ ...properties, client_id: clientId }) } },
  };
}

/** By status, the errors that an OAuth route may give. */
function failures(...errors: readonly (keyof typeof OAUTH_MEANINGS)[]): Record<string, Response> {
  const byStatus = Map.groupBy(errors, (error) => String(oauthStatus(error)));
  const responses = [...byStatus].map(([status, group]) => [
    status,
    {
      description: group.map((error) => `- \`${error}\`: ${OAUTH_MEANINGS[error]}`).join("\n"),
      headers: status === "503" ? headers("Retry-After") : headers(),
      content: json("OauthFailure"),
    },
  ]);
  return Object.fromEntries(responses);
}

const BASIC = ["invalid_request", "invalid_client", "temporarily_unavailable"] as const;

export const SIGN_IN_OPERATIONS: Readonly<Record<string, Operation>> = {
  "POST /oauth/device_authorization": {
    operationId: "authorizeDevice",
    tags: ["Sign-in"],
    summary: "Begin a device login",
    description:
      "RFC 8628: what `tendon login` does. Show the person `verification_uri` and `user_code`, then ask " +
      `\`POST /oauth/token\` every \`interval\` seconds. A code is good for ${LIMITS.deviceLoginSeconds / 60} minutes and for one key.`,
    security: OPEN,
    requestBody: form({
      device_name: Type.Optional(
        Type.String({
          maxLength: LIMITS.deviceNameCharsMax,
          description: "How the device calls itself; shown to the person, and the key's name.",
        }),
      ),
    }),
    responses: {
      "200": { description: "The codes.", headers: headers(), content: json("DeviceAuthorization") },
      ...failures(...BASIC),
    },
  },
  "POST /oauth/token": {
    operationId: "takeToken",
    tags: ["Sign-in"],
    summary: "Ask for the key of a device login",
    security: OPEN,
    requestBody: form({
      grant_type: Type.Literal(DEVICE_GRANT),
      device_code: Type.String({ description: "From the answer that began the login." }),
    }),
    responses: {
      "200": { description: "The key, once.", headers: headers(), content: json("Token") },
      ...failures(
        ...BASIC,
        "invalid_grant",
        "unsupported_grant_type",
        "authorization_pending",
        "slow_down",
        "access_denied",
        "expired_token",
      ),
    },
  },
  "POST /oauth/revoke": {
    operationId: "revokeToken",
    tags: ["Sign-in"],
    summary: "Revoke a key",
    description:
      "RFC 7009: whoever has the key may end it. It ends on every node within a second. Also 200 for a key that is unknown " +
      "or revoked already: afterwards there is none.",
    security: OPEN,
    requestBody: form({
      token: Type.String({ description: "The key, whole." }),
      token_type_hint: Type.Optional(Type.String({ description: "Not needed: there is one kind." })),
    }),
    responses: {
      "200": { description: "The key is not valid any more.", headers: headers(), content: json("Nothing") },
      ...failures(...BASIC),
    },
  },
};
