-- What looks after live calls reads them in pages, and finds the rings that are due. Neither column changes in the life of a
-- call, but where a clock jumped: its transitions still touch no index.
CREATE INDEX live_calls_by_id ON calls (id) WHERE ended_at IS NULL;
CREATE INDEX live_calls_by_ring ON calls (ring_expires_at) WHERE ended_at IS NULL;
