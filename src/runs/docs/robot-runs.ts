/** The page about robot runs: `robot-runs.md` with its table of errors put in. */
import { errorsTable } from "../../http/document/errors-table.ts";
import { documentPage } from "../../http/document/shell.ts";
import { RUNS } from "../errors.ts";
import text from "./robot-runs.md" with { type: "text" };

export function robotRunsPage(): string {
  return documentPage("Robot runs", text, { errors: errorsTable(RUNS) });
}
