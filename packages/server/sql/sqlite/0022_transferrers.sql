-- Calls by who transferred them: whoever is erased is named there, too, and is on neither side [XFER1].
CREATE INDEX calls_by_transferrer ON calls (
  extra ->> '$.transferred.by.userId', extra ->> '$.transferred.by.role', product, started_at, call_uuid
) WHERE extra ->> '$.transferred.by.userId' IS NOT NULL;
