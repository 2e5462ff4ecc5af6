-- What was seen of calls beside their events [TRACE1]. Of an invite that was refused, which may have no call, `role` and
-- `user_id` say who asked; they are blank otherwise.
CREATE TABLE call_timeline (
  product TEXT NOT NULL,
  call_uuid TEXT NOT NULL,
  id TEXT NOT NULL,
  at INTEGER NOT NULL,
  -- caller, callee or blank.
  side TEXT NOT NULL,
  role TEXT NOT NULL,
  user_id TEXT NOT NULL,
  -- JSON.
  entry TEXT NOT NULL,
  PRIMARY KEY (product, call_uuid, id)
) STRICT;
CREATE INDEX call_timeline_refused ON call_timeline (at) WHERE role <> '';
CREATE INDEX call_timeline_asker ON call_timeline (user_id, role, product) WHERE role <> '';
