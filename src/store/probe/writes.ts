/** The write that shows whether the store takes writes. */
import { changes, type Steps } from "../steps.ts";

/** Changes the row each time, so that there is something to make durable. */
export function* wrote(): Steps<"kept"> {
  yield* changes(
    `INSERT INTO probes (id, writes) VALUES (1, 1)
     ON CONFLICT (id) DO UPDATE SET writes = probes.writes + 1`,
  );
  return "kept";
}
