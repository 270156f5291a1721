/** SQL text as it is shared between SQLite and PostgreSQL: parameters are written `$1`, `$2`. */

/**
 * The text for SQLite: `$n` becomes `?n`, because bun:sqlite numbers `$n` by first appearance, silently wrong.
 */
export function forSqlite(shared: string): string {
  return shared.replace(/\$(\d+)/g, "?$1");
}
