/** The page about language models: `language-models.md` with its table of errors put in. */
import { errorsTable } from "../../http/document/errors-table.ts";
import { documentPage } from "../../http/document/shell.ts";
import { MONEY_ROWS } from "../../std/every-route.ts";
import { LLM } from "../errors.ts";
import text from "./language-models.md" with { type: "text" };

export function languageModelsPage(): string {
  return documentPage("Language models", text, { errors: errorsTable(LLM, MONEY_ROWS) });
}
