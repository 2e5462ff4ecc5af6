-- Steps of which not everybody has been told yet; written in the commit of the step, and removed by whoever told it. Small,
-- and written all the time: its space is needed again soon, and nobody waits until its file is cut short.
CREATE TABLE outbox (
  id bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
  call_id bigint NOT NULL,
  -- When anybody may take it: until then whoever committed it, or has claimed it, is telling it. No index has it, so a claim
  -- is written beside the row (HOT).
  free_at timestamptz NOT NULL DEFAULT clock_timestamp() + interval '2 seconds',
  version integer NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, vacuum_truncate = off);

-- Writes a batch of transitions as `commit_changes` does, and for each step that is written a row in the outbox: `noted` are
-- their ids, in the order of `events`. `commit_changes` is for nodes of the version before: their steps have no rows, and they
-- tell them as they did.
CREATE FUNCTION commit_steps(creates json, moves json, events json, seen json, OUT refused integer[], OUT noted bigint[])
LANGUAGE plpgsql AS $$
DECLARE
  clashed integer[];
  participant bigint;
BEGIN
  refused := '{}';
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'commit_steps needs READ COMMITTED';
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
    UPDATE calls c SET (
      caller_role, caller_user_id, caller_name, callee_role, callee_user_id, context_type, context_id, call_type,
      metadata, started_at, ring_timeout_ms, version, status, callee_name, ring_expires_at, caller_place, callee_place,
      silenced, accepted_at, connected_at, ended_at, end_reason
    ) = (
      SELECT
        r.caller_role, r.caller_user_id, r.caller_name, r.callee_role, r.callee_user_id, r.context_type, r.context_id,
        r.call_type, r.metadata, r.started_at, r.ring_timeout_ms, r.version, r.status, r.callee_name, r.ring_expires_at,
        r.caller_place, r.callee_place, r.silenced, r.accepted_at, r.connected_at, r.ended_at, r.end_reason
      FROM json_populate_record(c, moved.change) AS r
    )
    FROM json_array_elements(moves) AS moved (change),
      json_to_record(moved.change) AS m (t integer, product text, call_uuid text, version integer)
    WHERE c.call_uuid = m.call_uuid AND c.product = m.product AND c.version = m.version - 1 AND m.t <> ALL (refused);
  END IF;

  WITH written AS (
    INSERT INTO call_events (call_id, version, type, at, by_user_id, by_role, by_session_id, notices)
    SELECT c.id, e.version, e.type, e.at, e.by_user_id, e.by_role, e.by_session_id, e.notices
    FROM ROWS FROM (
      json_to_recordset(events) AS (
        t integer, product text, call_uuid text, version integer, type text, at bigint, by_user_id text, by_role text,
        by_session_id text, notices text
      )
    ) WITH ORDINALITY AS e (
      t, product, call_uuid, version, type, at, by_user_id, by_role, by_session_id, notices, n
    )
    JOIN calls c ON c.call_uuid = e.call_uuid AND c.product = e.product
    WHERE e.t <> ALL (refused)
    ORDER BY e.n
    RETURNING call_id, version
  ), listed AS (
    -- Ids are given out in the order of what was written.
    INSERT INTO outbox (call_id, version) SELECT call_id, version FROM written RETURNING id
  )
  SELECT array_agg(id ORDER BY id) INTO noted FROM listed;
END
$$;

-- Takes rows for so long that nobody else is telling: the oldest first, and of a call none without those before it. Rows up to
-- `above` are not looked at. `free_at` far in the future is of before the clock of the database was set back.
-- One claim at a time: each sees what the one before took.
CREATE FUNCTION claim_steps(above bigint, most integer, lease interval)
RETURNS TABLE (id bigint, call_id bigint, version integer)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  now constant timestamptz := clock_timestamp();
  latest constant timestamptz := now + interval '1 minute';
BEGIN
  IF NOT EXISTS (SELECT FROM outbox o WHERE o.id > above AND (o.free_at <= now OR o.free_at > latest)) THEN
    RETURN;
  END IF;
  PERFORM pg_advisory_xact_lock(7164927202);
  RETURN QUERY
    UPDATE outbox o SET free_at = now + lease
    FROM (
      SELECT s.id
      FROM (
        SELECT p.id, bool_and(p.free_at <= now OR p.free_at > latest) OVER (PARTITION BY p.call_id ORDER BY p.id) AS is_free
        FROM (SELECT * FROM outbox w WHERE w.id > above ORDER BY w.id LIMIT 5000) p
      ) s
      WHERE s.is_free ORDER BY s.id LIMIT most
    ) chosen
    WHERE o.id = chosen.id
    RETURNING o.id, o.call_id, o.version;
END
$$;
