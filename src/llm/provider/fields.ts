/** The fields of what is sent to a provider, in either protocol. */

export type Json = Readonly<Record<string, unknown>>;

/** Without the fields that are null: a server may take a null for a value. */
export function present(fields: Json): Json {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null));
}
