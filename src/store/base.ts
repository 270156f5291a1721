/** The store's own domain: seen time (std/seen-clock.ts), and the write that proves that writes become durable. */
import { present } from "../std/assert.ts";
import type { DomainOf, Slice } from "./domain.ts";
import { changes, first, type Steps } from "./steps.ts";

interface Time {
  /** Seconds of seen time. */
  readonly seconds: number;
}

/** The stored seen time. A store that no service has used begins at `seconds`. */
function* timeBegin({ seconds }: Time): Steps<number> {
  yield* changes("INSERT INTO seen_time (one, seconds) VALUES (1, $1) ON CONFLICT DO NOTHING", seconds);
  return yield* storedTime();
}

/** Moves seen time on to `seconds`, and returns it: later than `seconds` if another process has seen more. */
function* timeKeep({ seconds }: Time): Steps<number> {
  yield* changes(
    `INSERT INTO seen_time (one, seconds) VALUES (1, $1)
     ON CONFLICT (one) DO UPDATE SET seconds = excluded.seconds WHERE seen_time.seconds < excluded.seconds`,
    seconds,
  );
  return yield* storedTime();
}

function* storedTime(): Steps<number> {
  const row = yield* first<{ seconds: bigint }>("SELECT seconds FROM seen_time");
  return Number(present(row, "the row of seen time").seconds);
}

/** Changes a row with every call, so that there is a write to make durable. */
function* probe(): Steps<"kept"> {
  yield* changes(
    `INSERT INTO probes (id, writes) VALUES (1, 1)
     ON CONFLICT (id) DO UPDATE SET writes = probes.writes + 1`,
  );
  return "kept";
}

const writes = { timeBegin, timeKeep, probe };

export const base = {
  reads: {},
  writes,
  // A power loss takes the last seconds of seen time back, so that records are kept a little longer.
  notDurable: ["timeKeep"],
} as const satisfies DomainOf<Record<never, never>, typeof writes>;

export type BaseStore = Slice<typeof base>;
