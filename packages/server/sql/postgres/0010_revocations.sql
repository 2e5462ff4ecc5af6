-- Participants whose tokens were taken back: those that were issued before an instant do not count [SRV2]. A participant is
-- here as a hash alone.
CREATE TABLE revocations (
  participant text COLLATE "C" PRIMARY KEY,
  not_before bigint NOT NULL,
  changed_at bigint NOT NULL
);

CREATE INDEX revocations_by_change ON revocations (changed_at);
