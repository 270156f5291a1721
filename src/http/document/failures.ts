/** The failures of a route as the OpenAPI document lists them: which there are follows from the route's declaration. */

import { EVERY, KEY_ROWS, MONEY_ROWS } from "../../std/every-route.ts";
import type { Row } from "../../std/failure.ts";
import { errorContent, headers, json, type Response } from "../operation.ts";
import type { Route } from "../route.ts";
import type { Surface } from "../surface.ts";

function rowsOf({ answers }: Surface, { keyed, readsBody, beginsWork, paid, failures = [] }: Route): Set<Row> {
  return new Set([
    EVERY.internal_error,
    ...(keyed ? KEY_ROWS : []),
    ...(readsBody ? [answers.tooLarge, answers.malformed] : []),
    ...(paid ? MONEY_ROWS : []),
    ...failures,
    ...(readsBody || beginsWork ? [answers.unavailable] : []),
  ]);
}

/** By status: each code with its meaning. */
export function failureResponses(surface: Surface, route: Route): Record<string, Response> {
  const rows = [...rowsOf(surface, route)].filter(({ http }) => http !== undefined);
  const byStatus = Map.groupBy(rows, ({ status, statuses }) => statuses ?? String(status));
  return Object.fromEntries([...byStatus].map(([status, group]) => [status, response(surface, status, group)]));
}

function response({ failureForm }: Surface, status: string, rows: readonly Row[]): Response {
  const own = failureForm?.schema !== undefined && rows.every((row) => Object.values(failureForm.table).includes(row));
  return {
    description: rows.map((row) => `- \`${row.wire}\`: ${row.http}`).join("\n"),
    headers: headers(
      ...(status === "401" && !own ? ["WWW-Authenticate"] : []),
      ...(status === "429" || status === "503" ? ["Retry-After"] : []),
      ...(rows.some(({ final }) => final) ? ["X-Should-Retry"] : []),
    ),
    content: own ? json(failureForm.schema) : errorContent([...new Set(rows.map(({ wire }) => wire))]),
  };
}
