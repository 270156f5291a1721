/** Geometric series whose bits are the same on every machine. */

/** base^(0/(count−1)) … base^((count−1)/(count−1)), without `pow`, whose last bit may differ from one machine to the next. */
export function geometric(base: number, count: number): number[] {
  const ratio = root(base, count - 1);
  const values = [1];
  for (let index = 1; index < count; index += 1) values.push((values[index - 1] ?? 1) * ratio);
  return values;
}

/** The `degree`-th root of `value` > 1, by Newton's method from above. */
function root(value: number, degree: number): number {
  let guess = value;
  for (;;) {
    let power = 1;
    for (let index = 1; index < degree; index += 1) power *= guess;
    const next = ((degree - 1) * guess + value / power) / degree;
    // The iteration decreases from above; the first step that does not is due to rounding.
    if (next >= guess) return guess;
    guess = next;
  }
}
