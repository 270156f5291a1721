/** `tendon token`: prints the key in use and nothing else, for `curl -H "Authorization: Bearer $(tendon token)"`. */
import { keyInUse } from "../client/sign-in.ts";
import { Problem } from "../std/problem.ts";
import type { Command } from "./frame/command.ts";
import { answer } from "./frame/print.ts";

export const token: Command = {
  name: "token",
  summary: "Print the API key in use and nothing else.",
  flags: { json: { about: "Print it as one JSON object." } },
  async run(given) {
    const key = await keyInUse();
    if (key instanceof Problem) return key;
    return answer(given, { api_key: key }, key);
  },
};
