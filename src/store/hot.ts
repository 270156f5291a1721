/**
 * The operations on a robot's path, as functions of PostgreSQL: a group of them is one statement, one round trip, one commit.
 * Their steps for SQLite stand in money.ts and chunks.ts; one test file runs both.
 *
 * A group first locks its accounts in the order of their ids, as everybody who needs several does, so no two groups can
 * wait for each other. A function that is repeated after a lost answer says what it said before.
 */
import { toText } from "./chunks.ts";
import type { ChunkRecord, NewRun, Writes } from "./store.ts";

/**
 * What a settlement need not wait for, by the schema's step (schema.ts). Third: the compression of a reply of some kilobytes that
 * is kept for minutes (0.12 ms of its 0.9), and one more look-up of the account that it has locked. Fourth: a table beside the
 * table for a reply that fits into a page (0.03 ms).
 */
export const LIGHTER: Readonly<Record<number, readonly string[]>> = {
  3: [
    "ALTER TABLE observations ALTER COLUMN reply SET STORAGE EXTERNAL",
    "ALTER TABLE observations DROP CONSTRAINT observations_account_id_fkey",
  ],
  4: ["ALTER TABLE observations SET (toast_tuple_target = 8160)"],
};

/** Made anew by whichever version of tendon brings the schema up to date. */
export const FUNCTIONS = `
CREATE OR REPLACE FUNCTION tendon_hold(o jsonb) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  a accounts%ROWTYPE;
  amount bigint := (o->>'amount')::bigint;
  run_month bigint := (o->>'month')::bigint;
  refusal text;
BEGIN
  SELECT * INTO a FROM accounts WHERE id = o->>'accountId' FOR NO KEY UPDATE;
  IF NOT FOUND THEN RETURN 'account_unknown'; END IF;
  refusal := CASE
    WHEN a.payment_method = 0 AND a.credits - a.settled <= 0 THEN 'payment_required'
    WHEN a.credits - a.settled - a.held < amount THEN 'insufficient_credit'
    WHEN CASE WHEN a.month >= run_month THEN a.month_settled ELSE 0 END + a.held + amount > a.spend_limit
      THEN 'spend_limit_exceeded'
  END;
  IF refusal IS NOT NULL THEN
    -- A repeat must not be refused for what it holds itself.
    RETURN CASE WHEN EXISTS (SELECT 1 FROM runs WHERE id = o->>'runId') THEN 'held' ELSE refusal END;
  END IF;
  INSERT INTO runs (id, account_id, model, submitted_at, day, month, held, expires_at, prompt_rate, cached_rate, completion_rate)
  VALUES (o->>'runId', a.id, o->>'model', (o->>'at')::bigint, (o->>'day')::bigint, run_month, amount,
    (o->>'expiresAt')::bigint, (o->>'promptRate')::bigint, (o->>'cachedRate')::bigint, (o->>'completionRate')::bigint)
  ON CONFLICT DO NOTHING;
  IF FOUND THEN UPDATE accounts SET held = held + amount WHERE id = a.id; END IF;
  RETURN 'held';
END $$;

CREATE OR REPLACE FUNCTION tendon_release(o jsonb) RETURNS text LANGUAGE plpgsql AS $$
DECLARE given bigint;
BEGIN
  PERFORM 1 FROM accounts WHERE id = o->>'accountId' FOR NO KEY UPDATE;
  DELETE FROM runs WHERE id = o->>'runId' AND account_id = o->>'accountId' AND settled_at IS NULL RETURNING held INTO given;
  IF NOT FOUND THEN RETURN 'unknown'; END IF;
  UPDATE accounts SET held = held - given WHERE id = o->>'accountId';
  RETURN 'released';
END $$;

CREATE OR REPLACE FUNCTION tendon_settle_chunk(o jsonb) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  r runs%ROWTYPE;
  seen jsonb := o->'observation';
  s jsonb := o->'session';
  paid bigint := (o->>'cost')::bigint;
  earlier text;
BEGIN
  PERFORM 1 FROM accounts WHERE id = o->>'accountId' FOR NO KEY UPDATE;
  IF seen IS NOT NULL THEN
    INSERT INTO observations (account_id, model, session_id, observation_id, digest, generation_id, step, reply, at)
    VALUES (o->>'accountId', seen->>'model', seen->>'sessionId', seen->>'observationId', decode(seen->>'digest', 'hex'),
      o->>'runId', (seen->>'step')::bigint, seen->>'reply', (o->>'at')::bigint)
    ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
      SELECT generation_id INTO earlier FROM observations WHERE account_id = o->>'accountId' AND model = seen->>'model'
        AND session_id = seen->>'sessionId' AND observation_id = seen->>'observationId';
      RETURN CASE WHEN earlier = o->>'runId' THEN 'kept' ELSE 'known' END;
    END IF;
  END IF;
  UPDATE runs SET settled_at = (o->>'at')::bigint, prompt_tokens = (o->>'promptTokens')::bigint,
    cached_tokens = (o->>'cachedTokens')::bigint, completion_tokens = (o->>'completionTokens')::bigint, cost = paid
  WHERE id = o->>'runId' AND account_id = o->>'accountId' AND settled_at IS NULL AND held >= paid RETURNING * INTO r;
  IF NOT FOUND THEN
    -- An observation is answered by a run that was settled with it, and by no other.
    DELETE FROM observations WHERE account_id = o->>'accountId' AND model = seen->>'model'
      AND session_id = seen->>'sessionId' AND observation_id = seen->>'observationId';
    RETURN CASE WHEN EXISTS (SELECT 1 FROM runs WHERE id = o->>'runId' AND settled_at IS NOT NULL) THEN 'kept' ELSE 'not_held' END;
  END IF;
  UPDATE accounts SET settled = settled + paid, held = held - r.held,
    month_settled = CASE WHEN month = r.month THEN month_settled + paid WHEN month < r.month THEN paid ELSE month_settled END,
    month = CASE WHEN month < r.month THEN r.month ELSE month END
  WHERE id = r.account_id;
  INSERT INTO entries (transfer, book, kind, account_id, amount, month, at)
  VALUES (r.id, 'account', 'settlement', r.account_id, -paid, r.month, (o->>'at')::bigint),
         (r.id, 'revenue', 'settlement', r.account_id, paid, r.month, (o->>'at')::bigint);
  INSERT INTO usage_days (account_id, day, model, month, runs, prompt_tokens, cached_tokens, completion_tokens, cost)
  VALUES (r.account_id, r.day, r.model, r.month, 1, (o->>'promptTokens')::bigint, (o->>'cachedTokens')::bigint,
    (o->>'completionTokens')::bigint, paid)
  ON CONFLICT (account_id, day, model) DO UPDATE SET runs = usage_days.runs + 1,
    prompt_tokens = usage_days.prompt_tokens + excluded.prompt_tokens,
    cached_tokens = usage_days.cached_tokens + excluded.cached_tokens,
    completion_tokens = usage_days.completion_tokens + excluded.completion_tokens,
    cost = usage_days.cost + excluded.cost;
  IF s IS NOT NULL THEN
    INSERT INTO robot_sessions (account_id, model, session_id, last_at, replies_kept)
    VALUES (r.account_id, s->>'model', s->>'sessionId', (o->>'at')::bigint, 1)
    ON CONFLICT (account_id, model, session_id) DO UPDATE SET last_at = excluded.last_at, replies_kept = 1
      WHERE robot_sessions.last_at < excluded.last_at OR robot_sessions.replies_kept = 0;
  END IF;
  RETURN 'kept';
END $$;

CREATE OR REPLACE FUNCTION tendon_apply(orders jsonb, durable boolean) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  o jsonb;
  outcomes text[] := '{}';
BEGIN
  IF NOT durable THEN SET LOCAL synchronous_commit = off; END IF;
  -- A single order locks its account by itself.
  IF jsonb_array_length(orders) > 1 THEN
    PERFORM 1 FROM accounts WHERE id IN (SELECT item->>'accountId' FROM jsonb_array_elements(orders) AS item)
      ORDER BY id FOR NO KEY UPDATE;
  END IF;
  FOR o IN SELECT item FROM jsonb_array_elements(orders) AS item LOOP
    outcomes := outcomes || CASE o->>'order'
      WHEN 'hold' THEN tendon_hold(o)
      WHEN 'release' THEN tendon_release(o)
      WHEN 'settleChunk' THEN tendon_settle_chunk(o)
    END;
  END LOOP;
  RETURN to_jsonb(outcomes);
END $$;
`;

export type HotName = "hold" | "release" | "settleChunk";

/** One member of a group, as the functions read it; what is undefined is left out. */
export function orderOf(name: HotName, argument: unknown): object {
  if (name === "hold") return holdOrder(argument as NewRun);
  if (name === "release") return { order: name, ...(argument as Parameters<Writes["release"]>[0]) };
  return settleOrder(argument as ChunkRecord);
}

function holdOrder({ rates, amount, ...run }: NewRun): object {
  const { prompt, cachedPrompt, completion } = rates;
  return {
    order: "hold",
    ...run,
    amount: String(amount),
    promptRate: String(prompt),
    cachedRate: String(cachedPrompt),
    completionRate: String(completion),
  };
}

function settleOrder({ usage, cost, session, observation, ...chunk }: ChunkRecord): object {
  const seen = observation && {
    ...observation,
    answer: undefined,
    reply: toText(observation.answer),
    digest: Buffer.from(observation.digest ?? []).toString("hex"),
  };
  return { order: "settleChunk", ...chunk, ...usage, cost: String(cost), session, observation: seen };
}
