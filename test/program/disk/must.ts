/** Throws where a promise is not kept. */
export function must(holds: boolean, otherwise: string): void {
  if (!holds) throw new Error(otherwise);
}
