/** The page about robot runs: `robot-runs.md` with its limits and its table of errors. */
import { failuresTable } from "../../http/document/failures-table.ts";
import { documentPage } from "../../http/document/shell.ts";
import { EVERY, KEY_ROWS } from "../../std/every-route.ts";
import { RUNS } from "../errors.ts";
import text from "./robot-runs.md" with { type: "text" };

export function robotRunsPage(): string {
  const errors = failuresTable(Object.values(RUNS), [...KEY_ROWS, EVERY.internal_error]);
  return documentPage("Robot runs", text, { errors });
}
