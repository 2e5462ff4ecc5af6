-- Calls, what happened to them, product keys and product settings.
-- Instants are milliseconds since the epoch. Texts compare byte by byte ("C"): the order of an index never depends on
-- the libraries of the machine.

CREATE TABLE calls (
  id bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
  product text COLLATE "C" NOT NULL,
  call_uuid text COLLATE "C" NOT NULL,
  -- What never changes.
  caller_role text COLLATE "C" NOT NULL,
  caller_user_id text COLLATE "C" NOT NULL,
  caller_name text,
  callee_role text COLLATE "C" NOT NULL,
  callee_user_id text COLLATE "C" NOT NULL,
  context_type text NOT NULL,
  context_id text NOT NULL,
  call_type text NOT NULL,
  metadata text,
  started_at bigint NOT NULL,
  ring_timeout_ms integer NOT NULL,
  -- What a transition may change. Each version is written once, over the one before.
  version integer NOT NULL,
  status text NOT NULL,
  callee_name text,
  ring_expires_at bigint NOT NULL,
  caller_place text NOT NULL,
  callee_place text,
  silenced text,
  accepted_at bigint,
  connected_at bigint,
  ended_at bigint,
  end_reason text
) WITH (fillfactor = 80);

-- No index has a column that a live call's transitions change, so PostgreSQL writes them beside the row (HOT).
-- call_uuid is unique per product [UUID1].
CREATE UNIQUE INDEX calls_by_uuid ON calls (call_uuid, product);
-- History, in both directions [HIST1].
CREATE INDEX calls_by_caller ON calls (caller_user_id, caller_role, product, started_at, call_uuid);
CREATE INDEX calls_by_callee ON calls (callee_user_id, callee_role, product, started_at, call_uuid);
-- The live calls: all of them, and those of a participant.
CREATE INDEX live_calls_by_caller ON calls (caller_user_id, caller_role, product) WHERE ended_at IS NULL;
CREATE INDEX live_calls_by_callee ON calls (callee_user_id, callee_role, product) WHERE ended_at IS NULL;
-- By the end: the calls whose final notices may be missing, and those that are old enough to be removed.
CREATE INDEX calls_by_end ON calls (ended_at) WHERE ended_at IS NOT NULL;

-- One row for every version of every call.
CREATE TABLE call_events (
  call_id bigint NOT NULL REFERENCES calls (id) ON DELETE CASCADE,
  version integer NOT NULL,
  type text NOT NULL,
  at bigint NOT NULL,
  by_user_id text,
  by_role text,
  by_session_id text,
  -- The pushes that the transition causes, a JSON array; NULL where it causes none.
  notices text,
  PRIMARY KEY (call_id, version)
);

-- Calls come and go quickly: the space of their old versions is needed again soon.
ALTER TABLE calls SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05);

-- Writes a batch of transitions: of each one all steps or none. `creates`, `moves` and `events` are arrays of rows, each
-- with the number of its transition (t); a row of `moves` is written over the version before its own alone. `seen` holds,
-- per invite, its two participants and their live calls as the decision saw them: `call_uuid:version` in the order of
-- call_uuid. The answer is the numbers of the transitions whose guard failed.
--
-- What it locks, it locks in one order: participants by hash, calls by call_uuid, new calls by call_uuid. So two batches
-- never wait for each other in a ring. No lock outlives the statement that calls the function. Each statement in here
-- sees what was committed before it began, which is true of READ COMMITTED alone.
CREATE FUNCTION commit_calls(creates json, moves json, events json, seen json) RETURNS integer[]
LANGUAGE plpgsql AS $$
DECLARE
  refused integer[] := '{}';
  clashed integer[];
  participant bigint;
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'commit_calls needs READ COMMITTED';
  END IF;

  IF seen IS NOT NULL THEN
    FOREACH participant IN ARRAY ARRAY(
      SELECT DISTINCT hashtextextended(p.name, 0)
      FROM json_to_recordset(seen) AS s (caller text, callee text), LATERAL (VALUES (s.caller), (s.callee)) AS p (name)
      ORDER BY 1
    ) LOOP
      PERFORM pg_advisory_xact_lock(participant);
    END LOOP;
    refused := ARRAY(
      SELECT s.t
      FROM json_to_recordset(seen) AS s (
        t integer, product text, caller_user_id text, caller_role text, callee_user_id text, callee_role text, live text
      )
      WHERE s.live <> coalesce((
        SELECT string_agg(l.call_uuid || ':' || l.version, ',' ORDER BY l.call_uuid)
        FROM (
          SELECT c.call_uuid, c.version FROM calls c
          WHERE c.ended_at IS NULL AND c.product = s.product
            AND c.caller_user_id = s.caller_user_id AND c.caller_role = s.caller_role
          UNION
          SELECT c.call_uuid, c.version FROM calls c
          WHERE c.ended_at IS NULL AND c.product = s.product
            AND c.callee_user_id = s.caller_user_id AND c.callee_role = s.caller_role
          UNION
          SELECT c.call_uuid, c.version FROM calls c
          WHERE c.ended_at IS NULL AND c.product = s.product
            AND c.caller_user_id = s.callee_user_id AND c.caller_role = s.callee_role
          UNION
          SELECT c.call_uuid, c.version FROM calls c
          WHERE c.ended_at IS NULL AND c.product = s.product
            AND c.callee_user_id = s.callee_user_id AND c.callee_role = s.callee_role
        ) l
      ), '')
    );
  END IF;

  IF moves IS NOT NULL THEN
    PERFORM 1 FROM (
      SELECT 1
      FROM json_to_recordset(moves) AS m (t integer, call_uuid text, product text)
      JOIN calls c ON c.call_uuid = m.call_uuid AND c.product = m.product
      WHERE m.t <> ALL (refused)
      ORDER BY c.call_uuid, c.product
      FOR UPDATE OF c
    ) held;
    refused := refused || ARRAY(
      SELECT m.t
      FROM json_to_recordset(moves) AS m (t integer, call_uuid text, product text, version integer)
      LEFT JOIN calls c ON c.call_uuid = m.call_uuid AND c.product = m.product
      WHERE c.version IS DISTINCT FROM m.version - 1
    );
  END IF;

  IF creates IS NOT NULL THEN
    WITH made AS (
      INSERT INTO calls (
        product, call_uuid, caller_role, caller_user_id, caller_name, callee_role, callee_user_id, context_type,
        context_id, call_type, metadata, started_at, ring_timeout_ms, version, status, callee_name, ring_expires_at,
        caller_place, callee_place, silenced, accepted_at, connected_at, ended_at, end_reason
      )
      SELECT
        n.product, n.call_uuid, n.caller_role, n.caller_user_id, n.caller_name, n.callee_role, n.callee_user_id,
        n.context_type, n.context_id, n.call_type, n.metadata, n.started_at, n.ring_timeout_ms, n.version, n.status,
        n.callee_name, n.ring_expires_at, n.caller_place, n.callee_place, n.silenced, n.accepted_at, n.connected_at,
        n.ended_at, n.end_reason
      FROM json_to_recordset(creates) AS n (
        t integer, product text, call_uuid text, caller_role text, caller_user_id text, caller_name text,
        callee_role text, callee_user_id text, context_type text, context_id text, call_type text, metadata text,
        started_at bigint, ring_timeout_ms integer, version integer, status text, callee_name text,
        ring_expires_at bigint, caller_place text, callee_place text, silenced text, accepted_at bigint,
        connected_at bigint, ended_at bigint, end_reason text
      )
      WHERE n.t <> ALL (refused)
      ORDER BY n.call_uuid COLLATE "C", n.product COLLATE "C"
      ON CONFLICT (call_uuid, product) DO NOTHING
      RETURNING call_uuid, product
    )
    SELECT array_agg(n.t) INTO clashed
    FROM json_to_recordset(creates) AS n (t integer, call_uuid text, product text)
    WHERE n.t <> ALL (refused)
      AND NOT EXISTS (SELECT FROM made WHERE made.call_uuid = n.call_uuid AND made.product = n.product);
    IF clashed IS NOT NULL THEN
      -- Of a transition that creates several calls the others go again, too.
      DELETE FROM calls c
      USING json_to_recordset(creates) AS n (t integer, call_uuid text, product text)
      WHERE c.call_uuid = n.call_uuid AND c.product = n.product AND n.t = ANY (clashed) AND n.t <> ALL (refused)
        AND NOT EXISTS (SELECT FROM call_events e WHERE e.call_id = c.id);
      refused := refused || clashed;
    END IF;
  END IF;

  IF moves IS NOT NULL THEN
    UPDATE calls c SET
      caller_role = m.caller_role, caller_user_id = m.caller_user_id, caller_name = m.caller_name,
      callee_role = m.callee_role, callee_user_id = m.callee_user_id, context_type = m.context_type,
      context_id = m.context_id, call_type = m.call_type, metadata = m.metadata, started_at = m.started_at,
      ring_timeout_ms = m.ring_timeout_ms, version = m.version, status = m.status, callee_name = m.callee_name,
      ring_expires_at = m.ring_expires_at, caller_place = m.caller_place, callee_place = m.callee_place,
      silenced = m.silenced, accepted_at = m.accepted_at, connected_at = m.connected_at, ended_at = m.ended_at,
      end_reason = m.end_reason
    FROM json_to_recordset(moves) AS m (
      t integer, product text, call_uuid text, caller_role text, caller_user_id text, caller_name text,
      callee_role text, callee_user_id text, context_type text, context_id text, call_type text, metadata text,
      started_at bigint, ring_timeout_ms integer, version integer, status text, callee_name text,
      ring_expires_at bigint, caller_place text, callee_place text, silenced text, accepted_at bigint,
      connected_at bigint, ended_at bigint, end_reason text
    )
    WHERE c.call_uuid = m.call_uuid AND c.product = m.product AND c.version = m.version - 1 AND m.t <> ALL (refused);
  END IF;

  INSERT INTO call_events (call_id, version, type, at, by_user_id, by_role, by_session_id, notices)
  SELECT c.id, e.version, e.type, e.at, e.by_user_id, e.by_role, e.by_session_id, e.notices
  FROM json_to_recordset(events) AS e (
    t integer, product text, call_uuid text, version integer, type text, at bigint, by_user_id text, by_role text,
    by_session_id text, notices text
  )
  JOIN calls c ON c.call_uuid = e.call_uuid AND c.product = e.product
  WHERE e.t <> ALL (refused);

  RETURN refused;
END
$$;

CREATE TABLE product_keys (
  key_id text COLLATE "C" PRIMARY KEY,
  products text NOT NULL,
  disabled boolean NOT NULL,
  origin text NOT NULL,
  created_at bigint NOT NULL
);

-- SHA-256 of the secrets of a key: the current one (valid_until NULL) and rotated ones until they run out [TOK4].
CREATE TABLE product_key_secrets (
  key_id text COLLATE "C" NOT NULL REFERENCES product_keys (key_id),
  secret_hash bytea NOT NULL,
  valid_until bigint,
  PRIMARY KEY (key_id, secret_hash)
);

CREATE TABLE product_settings (
  product text COLLATE "C" PRIMARY KEY,
  busy text NOT NULL,
  reveal_busy boolean NOT NULL,
  ring_timeout_ms integer
);
