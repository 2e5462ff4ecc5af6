-- The refused invites of a participant, in the order of their pages [TRACE1]. An operator of a large table may build the index
-- beforehand with CREATE INDEX CONCURRENTLY. One that such a statement left unfinished is built anew.
DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_index WHERE indexrelid = to_regclass('call_timeline_refused_of') AND NOT indisvalid) THEN
    DROP INDEX call_timeline_refused_of;
  END IF;
END
$$;
CREATE INDEX IF NOT EXISTS call_timeline_refused_of ON call_timeline (user_id, role, product, at, id) WHERE role <> '';
DROP INDEX call_timeline_by_asker;
