-- Calls of a product for its backend, newest first: all of them, and those that are live [SRV2]. No column of the two changes
-- in the life of a call.
CREATE INDEX calls_by_start ON calls (product, started_at, call_uuid);
CREATE INDEX live_calls_by_start ON calls (product, started_at, call_uuid) WHERE ended_at IS NULL;
