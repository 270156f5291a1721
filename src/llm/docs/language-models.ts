/** The page about language models: `language-models.md` with its limits and its table of errors put in. */
import { errorsTable } from "../../http/document/errors-table.ts";
import { documentPage } from "../../http/document/shell.ts";
import { LIMITS } from "../../limits.ts";
import { MONEY_ROWS } from "../../std/every-route.ts";
import { LLM } from "../errors.ts";
import text from "./language-models.md" with { type: "text" };

export function languageModelsPage(): string {
  return documentPage("Language models", text, VALUES, { errors: errorsTable(LLM, MONEY_ROWS) });
}

const whole = (value: number) => value.toLocaleString("en-US");

/** The texts of the page refer to them as `{{name}}`. */
const VALUES: Readonly<Record<string, string>> = {
  keepalive: `${LIMITS.llmKeepaliveMs / 1000} s`,
  unread: `${LIMITS.llmUnreadSeconds} s`,
  keyChars: whole(LIMITS.idempotencyKeyCharsMax),
  keyWait: `${LIMITS.llmKeyWaitMs / 1000} s`,
  body: `${LIMITS.llmBodyBytesMax / 2 ** 20} MiB`,
  json: `${LIMITS.jsonDepthMax} and ${whole(LIMITS.jsonValuesMax)}`,
  outputTokens: whole(LIMITS.outputTokensMax),
  live: whole(LIMITS.accountLlmLiveMax),
  jobs: whole(LIMITS.accountLlmJobsMax),
  jobsRunning: whole(LIMITS.accountLlmJobsRunningMax),
  streamTime: `${LIMITS.llmStreamMs / 60_000} minutes`,
};
