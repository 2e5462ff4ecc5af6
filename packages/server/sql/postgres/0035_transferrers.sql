-- Calls by who transferred them: whoever is erased is named there, too, and is on neither side [XFER1].
CREATE INDEX calls_by_transferrer ON calls (
  (extra::json #>> '{transferred,by,userId}'), (extra::json #>> '{transferred,by,role}'), product, started_at, call_uuid
) WHERE extra::json #>> '{transferred,by,userId}' IS NOT NULL;
