-- A timeline is joined to its call by product and call_uuid. Both columns have to compare alike: the primary key serves no
-- join of a column of the default collation with one of "C", and every batch of a retention read the whole table.
--
-- Both indexes that hold product are built first. An operator of a large table may build them beforehand with CREATE INDEX
-- CONCURRENTLY, as docs/operations.md shows: then this migration builds nothing. The change of the column takes over an index
-- that already compares by "C". It builds every index with a WHERE clause anew, so the index of askers leaves product out.
-- An index that an operator's statement left unfinished is built anew.
DO $$
DECLARE
  unfinished regclass;
BEGIN
  FOR unfinished IN
    SELECT indexrelid FROM pg_index WHERE NOT indisvalid
      AND indexrelid IN (to_regclass('call_timeline_by_call'), to_regclass('call_timeline_by_asker'))
  LOOP
    EXECUTE format('DROP INDEX %s', unfinished);
  END LOOP;
END
$$;
CREATE UNIQUE INDEX IF NOT EXISTS call_timeline_by_call ON call_timeline (product COLLATE "C", call_uuid, id);
CREATE INDEX IF NOT EXISTS call_timeline_by_asker ON call_timeline (user_id, role) WHERE role <> '';
DROP INDEX call_timeline_asker;
ALTER TABLE call_timeline DROP CONSTRAINT call_timeline_pkey;
ALTER TABLE call_timeline ALTER COLUMN product TYPE text COLLATE "C";
ALTER TABLE call_timeline ADD CONSTRAINT call_timeline_pkey PRIMARY KEY USING INDEX call_timeline_by_call;
