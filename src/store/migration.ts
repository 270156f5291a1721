/**
 * A change of the schema. A released migration is never edited: databases exist that it has run on.
 *
 * Its parts run in order, in one transaction. Texts are written in the types of SQLite's STRICT tables; `postgres/migrate.ts` says
 * what PostgreSQL makes of them. A statement ends with a semicolon at the end of a line. Times are Unix seconds, amounts
 * nano-dollars.
 */
import type { Steps } from "./steps.ts";

export type Migration = readonly Part[];

/** Statements for both engines, for one of them, or steps that need a program. */
type Part = string | { readonly sqlite?: string; readonly postgres?: string } | (() => Steps<void>);

/** The texts and steps of a migration on one engine; `translate`: from the types of SQLite to its own. */
export function partsFor(
  migration: Migration,
  engine: "sqlite" | "postgres",
  translate: (text: string) => string,
): readonly (string | (() => Steps<void>))[] {
  return migration.flatMap<string | (() => Steps<void>)>((part) => {
    if (typeof part === "function") return [part];
    const text = typeof part === "string" ? part : part[engine];
    return text === undefined ? [] : statements(translate(text));
  });
}

function statements(text: string): string[] {
  return text
    .split(/;\s*(?:\n|$)/)
    .map((statement) => statement.trim())
    .filter((statement) => statement !== "");
}
