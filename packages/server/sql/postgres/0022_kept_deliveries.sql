-- Lists of the deliveries of an endpoint, of one status or of all: what is kept of another status is not looked at. An
-- operator of a large table may build the index beforehand with CREATE INDEX CONCURRENTLY.
DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_index WHERE indexrelid = to_regclass('webhook_deliveries_by_status') AND NOT indisvalid) THEN
    DROP INDEX webhook_deliveries_by_status;
  END IF;
END
$$;
CREATE INDEX IF NOT EXISTS webhook_deliveries_by_status ON webhook_deliveries (endpoint_id, status, id);
DROP INDEX webhook_deliveries_list;

-- Endpoints that were removed and may have deliveries left: these go in steps.
CREATE TABLE webhook_removals (
  endpoint_id text PRIMARY KEY,
  removed_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
