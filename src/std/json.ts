/** Reading JSON that another program sent: what is not there, or is of another type, is undefined. */

type Path = readonly (string | number)[];

/** The parsed text; undefined when it is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The value at a path of keys and indices. */
export function valueAt(value: unknown, ...path: Path): unknown {
  let current = value;
  for (const key of path) {
    if (typeof current !== "object" || current === null || !Object.hasOwn(current, key)) return undefined;
    current = (current as Record<string | number, unknown>)[key];
  }
  return current;
}

export function textAt(value: unknown, ...path: Path): string | undefined {
  const found = valueAt(value, ...path);
  return typeof found === "string" ? found : undefined;
}

/** A finite number. */
export function numberAt(value: unknown, ...path: Path): number | undefined {
  const found = valueAt(value, ...path);
  return typeof found === "number" && Number.isFinite(found) ? found : undefined;
}
