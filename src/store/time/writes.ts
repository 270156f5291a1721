/** Writes of seen time. */
import { present } from "../../std/assert.ts";
import { changes, first, type Steps } from "../steps.ts";

interface Time {
  /** Seconds of seen time. */
  readonly seconds: number;
}

/** Where seen time stands; on a store that nothing has served from yet it begins at `seconds`. */
export function* timeBegin({ seconds }: Time): Steps<number> {
  yield* changes("INSERT INTO seen_time (one, seconds) VALUES (1, $1) ON CONFLICT DO NOTHING", seconds);
  return yield* stored();
}

/** Moves seen time on to `seconds`, and says where it stands: further on, if another process has seen more. */
export function* timeKeep({ seconds }: Time): Steps<number> {
  yield* changes(
    `INSERT INTO seen_time (one, seconds) VALUES (1, $1)
     ON CONFLICT (one) DO UPDATE SET seconds = excluded.seconds WHERE seen_time.seconds < excluded.seconds`,
    seconds,
  );
  return yield* stored();
}

function* stored(): Steps<number> {
  const row = yield* first<{ seconds: bigint }>("SELECT seconds FROM seen_time");
  return Number(present(row, "the row of seen time").seconds);
}
