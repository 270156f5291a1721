/**
 * Migration 5: what was kept for a repeat of an observation was the text of one transport, a whole `chat.completion` or an
 * `action_chunk` message; now it is a head and rows from which every transport makes its own (released code, never edited).
 *
 * Digests were of the old form of requests and cannot be made anew, since frames are not kept. Such rows have none: whoever
 * repeats the observation_id, as robots do after an upgrade, gets the answer. A reply that cannot be read is no longer kept.
 */
import { changes, rows, type Steps } from "../../store/steps.ts";

/** Replies in memory at once. */
const PART = 256;

const KEY = "account_id, model, session_id, observation_id";

interface OldRow {
  readonly account_id: string;
  readonly model: string;
  readonly session_id: string;
  readonly observation_id: string;
  readonly generation_id: string;
  readonly step: bigint | null;
  readonly reply: string;
  readonly at: bigint;
}

export function* convertReplies(): Steps<void> {
  yield* changes(
    `INSERT INTO observations (${KEY}, digest, generation_id, step, head, rows, at)
     SELECT ${KEY}, NULL, generation_id, step, NULL, NULL, at FROM old_observations WHERE reply IS NULL`,
  );
  let last: readonly string[] = ["", "", "", ""];
  for (;;) {
    const found: readonly OldRow[] = yield* rows<OldRow>(
      `SELECT ${KEY}, generation_id, step, reply, at FROM old_observations
       WHERE reply IS NOT NULL AND (${KEY}) > ($1, $2, $3, $4) ORDER BY ${KEY} LIMIT ${PART}`,
      ...last,
    );
    for (const row of found) yield* convert(row);
    const end = found.at(-1);
    if (!end || found.length < PART) return;
    last = [end.account_id, end.model, end.session_id, end.observation_id];
  }
}

function* convert(old: OldRow): Steps<void> {
  const answer = neutralAnswer(old.reply, { model: old.model, at: Number(old.at) });
  yield* changes(
    `INSERT INTO observations (${KEY}, digest, generation_id, step, head, rows, at)
     VALUES ($account_id, $model, $session_id, $observation_id, NULL, $generation_id, $step, $head, $rows, $at)`,
    { ...old, head: answer?.head, rows: answer?.rows },
  );
}

/** An action chunk as both transports wrote it; a socket's rows may be bytes behind the text. */
interface OldChunk {
  readonly session_id: string;
  readonly step: number;
  readonly dt: number;
  readonly action_dim: number;
  readonly action_space: string;
  readonly actions?: readonly (readonly number[])[];
  readonly next_frames_per_camera: number;
  readonly timing_ms: object;
  readonly cache_reset?: boolean;
}

interface OldUsage {
  readonly prompt_tokens: number;
  readonly prompt_tokens_details: { readonly cached_tokens: number };
  readonly completion_tokens: number;
}

interface OldCompletion {
  readonly id: string;
  readonly created: number;
  readonly usage: OldUsage;
  readonly choices: readonly [{ readonly message: { readonly content: string } }];
}

type OldMessage = OldChunk & { readonly id: string; readonly usage: OldUsage };

/** The head and rows of an old reply; undefined when it is not one. */
function neutralAnswer(
  reply: string,
  { model, at }: { readonly model: string; readonly at: number },
): { readonly head: string; readonly rows: Uint8Array } | undefined {
  try {
    // A socket's rows follow its text after a line break, which no JSON on one line has.
    const [text = "", base64] = reply.split("\n");
    const outer: OldCompletion | OldMessage = JSON.parse(text);
    const chunk: OldChunk = "choices" in outer ? JSON.parse(outer.choices[0].message.content) : outer;
    const created = "choices" in outer ? outer.created : at;
    const values = base64 === undefined ? floats(chunk.actions ?? []) : Buffer.from(base64, "base64");
    const rowBytes = chunk.action_dim * Float32Array.BYTES_PER_ELEMENT;
    if (!(values.length > 0 && values.length % rowBytes === 0)) return undefined;
    return { head: headOf({ id: outer.id, created, model }, chunk, outer.usage), rows: new Uint8Array(values) };
  } catch {
    return undefined;
  }
}

function headOf(names: object, chunk: OldChunk, usage: OldUsage): string {
  const { session_id, step, dt, action_dim, action_space, next_frames_per_camera, timing_ms, cache_reset } = chunk;
  const { prompt_tokens, completion_tokens, prompt_tokens_details } = usage;
  return JSON.stringify({
    ...names,
    ...{ session_id, step, dt, action_dim, action_space, next_frames_per_camera, timing_ms },
    ...(cache_reset === true ? { cache_reset } : {}),
    usage: { prompt_tokens, cached_tokens: prompt_tokens_details.cached_tokens, completion_tokens },
  });
}

/** Little-endian, row-major. */
function floats(actions: readonly (readonly number[])[]): Uint8Array {
  return new Uint8Array(Float32Array.from(actions.flat()).buffer);
}
