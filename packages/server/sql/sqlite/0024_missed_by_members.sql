-- Whether a call to a group rang at a member until it was answered or over: not where the member declined or has left the
-- group. If nobody answered, such calls are in the history of the member [GROUP1].
ALTER TABLE call_members ADD COLUMN rang INTEGER NOT NULL DEFAULT 1;
-- The history of a member reads these, and passes no others over: most calls to a group are answered.
CREATE INDEX members_rung ON call_members (product, role, user_id, started_at, call_uuid) WHERE rang = 1;

-- A call that is copied from another store may have been declined before it comes, and be over. Its events name those who
-- declined or left, so an erasure has to find it by them [SRV2].
DROP TRIGGER call_to_group;
CREATE TRIGGER call_to_group AFTER INSERT ON calls WHEN NEW.extra LIKE '%"group":%' BEGIN
  INSERT OR IGNORE INTO call_members (product, role, user_id, started_at, call_uuid, rang)
  SELECT NEW.product, NEW.callee_role, user_id, NEW.started_at, NEW.call_uuid, min(rang)
  FROM (
    SELECT value AS user_id, NEW.ended_at IS NULL OR NEW.accepted_at IS NULL AS rang
    FROM json_each(NEW.extra, '$.group.members')
    UNION ALL SELECT value, 0 FROM json_each(NEW.extra, '$.group.declined')
    UNION ALL SELECT value, 0 FROM json_each(NEW.extra, '$.group.left')
  )
  GROUP BY user_id;
END;

-- Members who have declined or left since, and no others: a long list would cost as much at each decline.
CREATE TRIGGER call_to_group_changed AFTER UPDATE ON calls
WHEN NEW.extra LIKE '%"group":%' AND NEW.extra IS NOT OLD.extra AND NEW.accepted_at IS NULL BEGIN
  UPDATE call_members SET rang = 0
  WHERE product = NEW.product AND role = NEW.callee_role AND started_at = NEW.started_at AND call_uuid = NEW.call_uuid
    AND user_id IN (
      SELECT * FROM (
        SELECT value FROM json_each(NEW.extra, '$.group.declined')
        EXCEPT SELECT value FROM json_each(OLD.extra, '$.group.declined')
      )
      UNION
      SELECT * FROM (
        SELECT value FROM json_each(OLD.extra, '$.group.members')
        EXCEPT SELECT value FROM json_each(NEW.extra, '$.group.members')
      )
    );
END;

-- Those who declined before their turn, or left with the last ones, are kept, too.
DROP TRIGGER call_in_turn_ended;
CREATE TRIGGER call_in_turn_ended AFTER UPDATE ON calls
WHEN OLD.extra LIKE '%"turns":%' AND OLD.ended_at IS NULL AND NEW.ended_at IS NOT NULL AND NEW.accepted_at IS NULL BEGIN
  DELETE FROM call_members
  WHERE product = OLD.product AND role = OLD.callee_role AND started_at = OLD.started_at AND call_uuid = OLD.call_uuid
    AND user_id IN (
      SELECT value FROM json_each(OLD.extra, '$.group.members')
      EXCEPT SELECT value FROM json_each(NEW.extra, '$.group.members')
      EXCEPT SELECT value FROM json_each(NEW.extra, '$.group.declined')
      EXCEPT SELECT value FROM json_each(NEW.extra, '$.group.left')
    );
END;

-- Of an answered call those are kept whom it names itself from now on, and those who declined or left: its events name them.
-- None of them has it in the history.
DROP TRIGGER call_to_group_ended;
CREATE TRIGGER call_to_group_ended AFTER UPDATE ON calls
WHEN OLD.extra LIKE '%"group":%' AND OLD.ended_at IS NULL AND NEW.ended_at IS NOT NULL AND NEW.accepted_at IS NOT NULL BEGIN
  UPDATE call_members SET rang = 0
  WHERE product = NEW.product AND role = NEW.callee_role AND started_at = NEW.started_at AND call_uuid = NEW.call_uuid
    AND user_id IN (SELECT value FROM json_each(NEW.extra, '$.group.members'));
  DELETE FROM call_members
  WHERE product = OLD.product AND role = OLD.callee_role AND started_at = OLD.started_at AND call_uuid = OLD.call_uuid
    AND user_id IN (SELECT value FROM json_each(OLD.extra, '$.group.members')) AND rang = 1;
END;
DROP TRIGGER call_to_group_gone;
CREATE TRIGGER call_to_group_gone AFTER DELETE ON calls WHEN OLD.extra LIKE '%"group":%' BEGIN
  DELETE FROM call_members
  WHERE product = OLD.product AND role = OLD.callee_role AND started_at = OLD.started_at AND call_uuid = OLD.call_uuid
    AND user_id IN (
      SELECT value FROM json_each(OLD.extra, '$.group.members')
      UNION SELECT value FROM json_each(OLD.extra, '$.group.declined')
      UNION SELECT value FROM json_each(OLD.extra, '$.group.left')
    );
END;
