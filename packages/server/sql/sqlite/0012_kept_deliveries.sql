-- Lists of the deliveries of an endpoint, of one status or of all: what is kept of another status is not looked at.
CREATE INDEX webhook_deliveries_by_status ON webhook_deliveries (endpoint_id, status, id);
DROP INDEX webhook_deliveries_list;

-- Endpoints that were removed and may have deliveries left: these go in steps.
CREATE TABLE webhook_removals (
  endpoint_id TEXT PRIMARY KEY,
  removed_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
