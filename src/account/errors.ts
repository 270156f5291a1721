/** Why a page for people does not show or do what was asked. */
import { type Answers, row, table } from "../std/failure.ts";

/** Pages are not in the documentation of the API: their rows have no meaning there. */
export const PAGE = table({
  signInFailed: row(401, {}),
  forbidden: row(403, {}),
  notFound: row(404, {}),
  tooLarge: row(413, {}),
  refused: row(422, {}),
  tooMany: row(429, {}),
  unavailable: row(503, {}),
});

export const PAGE_ANSWERS: Answers = {
  tooLarge: PAGE.tooLarge,
  malformed: PAGE.refused,
  unavailable: PAGE.unavailable,
};

/** The text for the page, and the kind, which decides the status. */
export class PageRefusal {
  constructor(
    readonly text: string,
    readonly kind: keyof typeof PAGE = "refused",
    /** When to try again. */
    readonly retryAfterSeconds?: number,
  ) {}
}

export function unavailable(): PageRefusal {
  return new PageRefusal("The service cannot look this up right now: try again in a moment.", "unavailable", 1);
}
