/** The `[oidc]` table: the provider with which people sign in (OpenID Connect). */
import { FormatRegistry, type StaticDecode, Type } from "@sinclair/typebox";
import { text } from "./fields.ts";

/** Plain HTTP would let anybody on the way sign in as anybody; on this machine there is no way. */
const LOOPBACK_HOSTS = ["localhost", "127.0.0.1", "[::1]"];

FormatRegistry.Set("issuer", (given) => {
  if (!URL.canParse(given) || /[?#@]/.test(given)) return false;
  const { protocol, hostname } = new URL(given);
  return protocol === "https:" || (protocol === "http:" && LOOPBACK_HOSTS.includes(hostname));
});

export const OidcTable = Type.Object(
  {
    issuer: Type.String({ format: "issuer", expected: "an https:// address, or http:// on this machine" }),
    client_id: text(),
    /** Variable with the client's secret; absent: a public client. */
    client_secret_env: Type.Optional(text()),
    /** The name that people read on the page. */
    name: text("single sign-on"),
    /** Asked for; `openid` and `email` are needed. */
    scopes: Type.String({
      pattern: "\\bopenid\\b",
      expected: 'a list of scopes with "openid" in it',
      default: "openid email",
    }),
  },
  { additionalProperties: false },
);

export type OidcConfig = ReturnType<typeof oidcConfig>;

/** `secret`: what stands in the variable that the table names. */
export function oidcConfig(table: StaticDecode<typeof OidcTable>, secret: string | undefined) {
  return Object.freeze({
    issuer: table.issuer,
    clientId: table.client_id,
    /** A secret. */
    clientSecret: secret,
    name: table.name,
    scopes: table.scopes,
  });
}
