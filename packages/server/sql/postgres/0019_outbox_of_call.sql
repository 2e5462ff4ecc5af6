-- What is left of a call is asked for before a later step of it is told. `free_at` is in no index yet, so a claim is still
-- written beside its row.
CREATE INDEX outbox_of_call ON outbox (call_id);
