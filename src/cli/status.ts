/** `tendon status`: which key is in use, for which service, and whether that service takes it. */
import { countModels, ErrorReply } from "../client/http.ts";
import { type SignedIn, safePrefix, signedIn } from "../client/sign-in.ts";
import { clientConfig } from "../config/environment.ts";
import { EXIT, Problem } from "../std/problem.ts";
import { BASE_URL_FLAG, type Command } from "./frame/command.ts";
import { answer } from "./frame/print.ts";

export const status: Command = {
  name: "status",
  summary: "Show which API key is in use, and whether the service accepts it.",
  flags: {
    "base-url": BASE_URL_FLAG,
    json: { about: "Print it as one JSON object." },
  },
  async run(given) {
    const service = await signedIn(given.text("base-url"));
    if (service instanceof Problem) return service;
    const models = await countModels(service);
    const refused = models instanceof ErrorReply && models.status === 401 ? models : undefined;
    // The key is shown also when the service refuses it or cannot be reached; null: the service did not say.
    const valid = models instanceof Problem ? (refused ? false : null) : true;
    const code = models instanceof ErrorReply ? models.code : undefined;
    const prefix = safePrefix(service.apiKey) ?? null;
    const facts = { prefix, base_url: service.url, source: service.source, valid, code };
    await answer(given, facts, lines(service, valid));
    if (models instanceof Problem && refused === undefined) return models;
    return refused === undefined ? EXIT.done : new Problem(`${refused.message}; ${advice(service)}`, EXIT.notSignedIn);
  },
};

function lines(service: SignedIn, valid: boolean | null): string {
  const from = service.source === "environment" ? "TENDON_API_KEY" : clientConfig().credentialsPath;
  return [
    valid === null ? "Not known whether the key is good." : valid ? "Signed in." : "The service refuses the key.",
    `  key      ${safePrefix(service.apiKey) ?? "not of the form of a tendon key"}`,
    `  from     ${from}`,
    `  service  ${service.url}`,
  ].join("\n");
}

function advice(service: SignedIn): string {
  return service.source === "environment"
    ? "TENDON_API_KEY is used before the credentials file: unset it, or set it to a key of this service"
    : "run 'tendon login' for a new key";
}
