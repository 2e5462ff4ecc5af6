-- What was seen of calls beside their events [TRACE1]. An entry is named by the row of its call, so that those of calls that
-- are live are side by side. An invite that was refused may have no call: its `call_id` is 0, it says product and call
-- itself, and `role` and `user_id` say who asked. Those four are blank otherwise.
CREATE TABLE call_timeline (
  call_id INTEGER NOT NULL,
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
  PRIMARY KEY (call_id, product, call_uuid, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX call_timeline_refused ON call_timeline (at) WHERE role <> '';
CREATE INDEX call_timeline_asker ON call_timeline (user_id, role, product) WHERE role <> '';
