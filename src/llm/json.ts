/** JSON objects of a provider: those that are sent, and those that come, whose fields have any type. */

export type JsonObject = Readonly<Record<string, unknown>>;

/** Leaves out the fields that are null, since a server may take a null for a value. */
export function present(fields: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null));
}

/** undefined for anything but an object. */
export function objectOf(value: unknown): JsonObject | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonObject) : undefined;
}
