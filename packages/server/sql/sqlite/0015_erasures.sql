-- What erasures have counted whose answer nobody has heard yet [SRV2]. A participant is only here as a hash.
CREATE TABLE erasures (
  participant TEXT PRIMARY KEY,
  devices INTEGER NOT NULL,
  timeline_entries INTEGER NOT NULL,
  calls INTEGER NOT NULL,
  webhook_deliveries INTEGER NOT NULL,
  changed_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX erasures_by_change ON erasures (changed_at);
