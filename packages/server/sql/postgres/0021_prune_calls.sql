-- Removes at most `most` of the calls that ended before an instant, the oldest first, with their events and timelines, and
-- answers how many. It leaves out the first `past` of them, which could not be removed. A node's own clock may be wrong: a call that ended less than `kept_ms` ago by the clock of the database
-- stays. All times are in ms. Events go with their call, and need no right of their own.
--
-- A call that somebody else holds is left for later, so one step never waits for another. Each statement in here sees what
-- was committed before it began, which is only true of READ COMMITTED: whoever added to a timeline before its call was locked
-- is seen.
CREATE FUNCTION prune_calls(before float8, kept_ms float8, most integer, past integer) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
  until constant bigint := least(before, extract(epoch FROM clock_timestamp()) * 1000 - kept_ms)::bigint;
  ids bigint[];
BEGIN
  ids := ARRAY(
    SELECT c.id FROM calls c WHERE c.ended_at < until ORDER BY c.ended_at LIMIT most OFFSET past FOR UPDATE SKIP LOCKED
  );
  DELETE FROM call_timeline t USING calls c
  WHERE c.id = ANY (ids) AND t.product = c.product AND t.call_uuid = c.call_uuid;
  DELETE FROM calls c WHERE c.id = ANY (ids);
  RETURN cardinality(ids);
END
$$;
