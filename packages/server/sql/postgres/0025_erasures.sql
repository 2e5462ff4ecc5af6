-- What erasures have counted whose answer nobody has heard yet [SRV2]. A participant is only here as a hash.
CREATE TABLE erasures (
  participant text COLLATE "C" PRIMARY KEY,
  devices bigint NOT NULL,
  timeline_entries bigint NOT NULL,
  calls bigint NOT NULL,
  webhook_deliveries bigint NOT NULL,
  changed_at timestamptz NOT NULL
);
CREATE INDEX erasures_by_change ON erasures (changed_at);
