-- What was seen of calls beside their events [TRACE1]. Of an invite that was refused, which may have no call, `role` and
-- `user_id` say who asked; they are blank otherwise.
CREATE TABLE call_timeline (
  product text NOT NULL,
  call_uuid text COLLATE "C" NOT NULL,
  id text COLLATE "C" NOT NULL,
  at bigint NOT NULL,
  -- caller, callee or blank.
  side text NOT NULL,
  role text NOT NULL,
  user_id text NOT NULL,
  -- JSON.
  entry text NOT NULL,
  PRIMARY KEY (product, call_uuid, id)
);
CREATE INDEX call_timeline_refused ON call_timeline (at) WHERE role <> '';
CREATE INDEX call_timeline_asker ON call_timeline (user_id, role, product) WHERE role <> '';
