-- Groups of participants of one role [GROUP1]. Members are in the order of the list.
CREATE TABLE call_groups (
  product TEXT NOT NULL,
  role TEXT NOT NULL,
  name TEXT NOT NULL,
  strategy TEXT NOT NULL,
  member_ring_ms INTEGER NOT NULL,
  ring_ms INTEGER NOT NULL,
  PRIMARY KEY (product, role, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE call_group_members (
  product TEXT NOT NULL,
  role TEXT NOT NULL,
  group_name TEXT NOT NULL,
  turn INTEGER NOT NULL,
  user_id TEXT NOT NULL,
  PRIMARY KEY (product, role, group_name, turn)
) STRICT, WITHOUT ROWID;

CREATE INDEX groups_of_member ON call_group_members (product, role, user_id, group_name);
