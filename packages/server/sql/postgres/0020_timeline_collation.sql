-- A timeline is joined to its call by product and call_uuid. Both columns have to compare alike: the primary key serves no
-- join of a column of the default collation with one of "C", and every batch of a retention read the whole table.
--
-- The new key is built first. An operator of a large table may build it beforehand with CREATE UNIQUE INDEX CONCURRENTLY, as
-- docs/operations.md shows: then nothing waits, because the change of the column takes over an index that already compares
-- by "C". One that such a statement left unfinished is built anew.
DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_index WHERE indexrelid = to_regclass('call_timeline_by_call') AND NOT indisvalid) THEN
    DROP INDEX call_timeline_by_call;
  END IF;
END
$$;
CREATE UNIQUE INDEX IF NOT EXISTS call_timeline_by_call ON call_timeline (product COLLATE "C", call_uuid, id);
ALTER TABLE call_timeline DROP CONSTRAINT call_timeline_pkey;
ALTER TABLE call_timeline ALTER COLUMN product TYPE text COLLATE "C";
ALTER TABLE call_timeline ADD CONSTRAINT call_timeline_pkey PRIMARY KEY USING INDEX call_timeline_by_call;
