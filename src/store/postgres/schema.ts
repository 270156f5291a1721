/** The schema on PostgreSQL. Only our own texts are translated. */

/**
 * A schema text, whose types are those of a STRICT table of SQLite. Texts are compared by their bytes, as there: a language's
 * order would be another order, and slow in every index.
 */
export function schemaForPostgres(text: string): string {
  return text
    .replace(/\bINTEGER\b/g, "BIGINT")
    .replace(/\bBLOB\b/g, "BYTEA")
    .replace(/\bTEXT\b/g, 'TEXT COLLATE "C"')
    .replace(/\) STRICT(, WITHOUT ROWID)?;/g, ");");
}
