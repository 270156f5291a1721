/** The page about language models: `language-models.md` with its limits and its table of errors put in. */
import { failuresTable } from "../../http/document/failures-table.ts";
import { documentPage } from "../../http/document/shell.ts";
import { EVERY, KEY_ROWS, MONEY_ROWS } from "../../std/every-route.ts";
import type { Row } from "../../std/failure.ts";
import { LLM } from "../errors.ts";
import text from "./language-models.md" with { type: "text" };

export function languageModelsPage(): string {
  const own: readonly Row[] = Object.values(LLM);
  const every: readonly Row[] = [...KEY_ROWS, ...MONEY_ROWS, EVERY.internal_error];
  const errors = failuresTable(
    own.filter(({ http, event }) => http !== undefined || event !== undefined),
    every.filter(({ http }) => http !== undefined),
  );
  return documentPage("Language models", text, { errors });
}
