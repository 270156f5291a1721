/** `tendon token`: prints the key in use and nothing else, for `curl -H "Authorization: Bearer $(tendon token)"`. */
import { EXIT, Problem } from "../error.ts";
import type { Command, Given } from "./command.ts";
import { print, printJson } from "./print.ts";
import { signedIn } from "./sign-in.ts";

export const token: Command = {
  name: "token",
  summary: "Print the API key in use and nothing else.",
  flags: { json: { about: "Print it as one JSON object." } },
  run,
};

async function run(given: Given): Promise<number | Problem> {
  const service = await signedIn(undefined);
  if (service instanceof Problem) return service;
  if (given.on("json")) await printJson({ api_key: service.apiKey });
  else await print(service.apiKey);
  return EXIT.done;
}
