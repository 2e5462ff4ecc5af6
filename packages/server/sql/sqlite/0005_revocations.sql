-- Participants whose tokens were taken back: those that were issued before an instant do not count [SRV2]. A participant is
-- here as a hash alone.
CREATE TABLE revocations (
  participant TEXT PRIMARY KEY,
  not_before INTEGER NOT NULL,
  changed_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX revocations_by_change ON revocations (changed_at);
