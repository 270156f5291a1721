/** Rows as records. */

/** A row of either engine. */
export type Row = Readonly<Record<string, string | bigint | Uint8Array | null>>;

/** The fields that may be numbers; all other integers of a record are amounts, which stay bigints. */
type NumberOf<R> = { [Field in keyof R & string]: number extends R[Field] ? Field : never }[keyof R & string];

/** Converts rows whose columns are the fields of R in snake_case; null is undefined. */
export function recordOf<R>(...numbers: readonly NumberOf<R>[]): (row: Row) => R {
  const isNumber = new Set<string>(numbers);
  return (row) => {
    const fields = Object.entries(row).map(([column, value]) => {
      const field = column.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
      if (isNumber.has(field) && value !== null) return [field, Number(value)];
      // PostgreSQL's bytes are a Buffer, a part of a larger one.
      return [field, value instanceof Uint8Array ? new Uint8Array(value) : (value ?? undefined)];
    });
    return Object.fromEntries(fields) as R;
  };
}
