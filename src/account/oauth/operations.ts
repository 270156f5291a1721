/** The OAuth routes in words, and what they answer as JSON Schema. */
import { type TSchema, Type } from "@sinclair/typebox";
import { headers, json, type Operation } from "../../http/operation.ts";
import { LIMITS } from "../../limits.ts";
import { CLIENT_ID, DEVICE_GRANT, OAUTH } from "./protocol.ts";

const clientId = Type.Literal(CLIENT_ID, { description: "The only client there is; it has no secret." });

function form(properties: Parameters<typeof Type.Object>[0]): NonNullable<Operation["requestBody"]> {
  return {
    description: `A form of at most ${LIMITS.formBytesMax / 1024} KiB.`,
    required: true,
    content: { "application/x-www-form-urlencoded": { schema: Type.Object({ ...properties, client_id: clientId }) } },
  };
}

function done(description: string, schema: string): Operation["responses"] {
  return { "200": { description, headers: headers(), content: json(schema) } };
}

export const OPERATIONS = {
  deviceAuthorization: {
    operationId: "authorizeDevice",
    summary: "Begin a device login",
    description:
      "RFC 8628: what `tendon login` does. Show the person `verification_uri` and `user_code`, then ask " +
      `\`POST /oauth/token\` every \`interval\` seconds. A code is good for ${LIMITS.deviceLoginSeconds / 60} minutes and for one key.`,
    requestBody: form({
      device_name: Type.Optional(
        Type.String({
          maxLength: LIMITS.deviceNameCharsMax,
          description: "How the device calls itself; shown to the person, and the key's name.",
        }),
      ),
    }),
    responses: done("The codes.", "DeviceAuthorization"),
  },
  token: {
    operationId: "takeToken",
    summary: "Ask for the key of a device login",
    requestBody: form({
      grant_type: Type.Literal(DEVICE_GRANT),
      device_code: Type.String({ description: "From the answer that began the login." }),
    }),
    responses: done("The key, once.", "Token"),
  },
  revoke: {
    operationId: "revokeToken",
    summary: "Revoke a key",
    description:
      "RFC 7009: a program that has the key may end it. It ends on every node within a second. An unknown key and one that is " +
      "revoked already are answered with 200 too: afterwards there is none.",
    requestBody: form({
      token: Type.String({ description: "The key, whole." }),
      token_type_hint: Type.Optional(Type.String({ description: "Not needed: there is one kind." })),
    }),
    responses: done("The key is not valid any more.", "Nothing"),
  },
} as const satisfies Record<string, Operation>;

const text = (description: string) => Type.String({ description });
const seconds = (description: string) => Type.Integer({ minimum: 0, description });

export const OAUTH_SCHEMAS: Readonly<Record<string, TSchema>> = {
  DeviceAuthorization: Type.Object({
    device_code: text("The device's secret: it asks for its key with it."),
    user_code: Type.String({
      pattern: "^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$",
      description: "What the person compares and confirms.",
    }),
    verification_uri: text("The page where it is confirmed."),
    verification_uri_complete: text("The same page with the code filled in; it still has to be confirmed there."),
    expires_in: seconds("Seconds until the code is void."),
    interval: seconds("Seconds to wait between two questions for the key."),
  }),
  Token: Type.Object({
    access_token: text("The API key, whole. It is answered once."),
    token_type: Type.Literal("Bearer"),
  }),
  Nothing: Type.Object({}, { description: "An empty object." }),
  OauthFailure: Type.Object({
    error: Type.String({
      enum: Object.keys(OAUTH),
      description: Object.entries(OAUTH)
        .map(([code, { http }]) => `\`${code}\`: ${http}`)
        .join(" "),
    }),
    error_description: text("For people; can change."),
  }),
};
