/** A real OpenID provider on this machine, with the people that a test gives it. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Provider } from "oidc-provider";

/** What the provider knows of a person, by the name that is typed on its page. */
export interface Known {
  readonly email?: string;
  readonly email_verified?: boolean;
}

export const CLIENT = { id: "tendon", secret: "a secret of the test" } as const;

export interface Issuer extends AsyncDisposable {
  readonly url: string;
  readonly people: Map<string, Known>;
  /** The number of requests for its discovery document. */
  readonly discovered: () => number;
}

/** `redirectUris`: where it may send browsers back to; asked for with its first request. */
export async function startIssuer(redirectUris: () => readonly string[]): Promise<Issuer> {
  const people = new Map<string, Known>();
  let discovered = 0;
  let handle: ReturnType<Provider["callback"]> | undefined;
  const server = createServer((request, response) => {
    if (request.url?.startsWith("/.well-known")) discovered += 1;
    handle ??= make().callback();
    handle(request, response);
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const make = () =>
    new Provider(url, {
      clients: [{ client_id: CLIENT.id, client_secret: CLIENT.secret, redirect_uris: [...redirectUris()] }],
      claims: { openid: ["sub"], email: ["email", "email_verified"] },
      cookies: { keys: ["of the test"] },
      findAccount: (_context, sub) => ({ accountId: sub, claims: async () => ({ sub, ...people.get(sub) }) }),
    });
  return {
    url,
    people,
    discovered: () => discovered,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
}
