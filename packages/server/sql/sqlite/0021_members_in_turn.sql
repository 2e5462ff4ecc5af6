-- A call that rings at one member after another may end before all had their turn: the others were not rung [GROUP1].
CREATE TRIGGER call_in_turn_ended AFTER UPDATE ON calls
WHEN OLD.extra LIKE '%"turns":%' AND OLD.ended_at IS NULL AND NEW.ended_at IS NOT NULL AND NEW.accepted_at IS NULL BEGIN
  DELETE FROM call_members
  WHERE product = OLD.product AND role = OLD.callee_role AND started_at = OLD.started_at AND call_uuid = OLD.call_uuid
    AND user_id IN (SELECT value FROM json_each(OLD.extra, '$.group.members'))
    AND user_id NOT IN (SELECT value FROM json_each(NEW.extra, '$.group.members'));
END;
