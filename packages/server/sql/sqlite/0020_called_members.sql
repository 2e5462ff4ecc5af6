-- Who was rung in calls to groups, to find the calls by them [GROUP1]. Triggers keep it, so no commit of other calls costs more.
CREATE TABLE call_members (
  product TEXT NOT NULL,
  role TEXT NOT NULL,
  user_id TEXT NOT NULL,
  started_at INTEGER NOT NULL,
  call_uuid TEXT NOT NULL,
  PRIMARY KEY (product, role, user_id, started_at, call_uuid)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER call_to_group AFTER INSERT ON calls WHEN NEW.extra LIKE '%"group":%' BEGIN
  INSERT OR IGNORE INTO call_members (product, role, user_id, started_at, call_uuid)
  SELECT NEW.product, NEW.callee_role, value, NEW.started_at, NEW.call_uuid
  FROM json_each(NEW.extra, '$.group.members');
END;

-- Whoever accepted is named by the call itself. The others of an answered call are not kept.
CREATE TRIGGER call_to_group_gone AFTER DELETE ON calls WHEN OLD.extra LIKE '%"group":%' BEGIN
  DELETE FROM call_members
  WHERE product = OLD.product AND role = OLD.callee_role AND started_at = OLD.started_at AND call_uuid = OLD.call_uuid
    AND user_id IN (SELECT value FROM json_each(OLD.extra, '$.group.members'));
END;
CREATE TRIGGER call_to_group_ended AFTER UPDATE ON calls
WHEN OLD.extra LIKE '%"group":%' AND OLD.ended_at IS NULL AND NEW.ended_at IS NOT NULL AND NEW.accepted_at IS NOT NULL BEGIN
  DELETE FROM call_members
  WHERE product = OLD.product AND role = OLD.callee_role AND started_at = OLD.started_at AND call_uuid = OLD.call_uuid
    AND user_id IN (SELECT value FROM json_each(OLD.extra, '$.group.members'));
END;
